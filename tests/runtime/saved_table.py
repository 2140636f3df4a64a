"""Saved programs as people write them: over the bundled packs, each with a call and the value that it has."""

# ruff: noqa: E501 - a program and its call in a row

from __future__ import annotations

from typing import Any, NamedTuple

FILES = {
    "notes/a.md": "# First\nTODO: call Ann\nplain\n",
    "notes/b.md": "# Second\nTODO: write\nTODO: read\n",
    "data/rows.csv": "name,size\nx,3\ny,5\n",
    "data/tree.json": '{"a": {"b": [1, 2, 3]}}',
    "src/one.py": "import os\n\n\ndef one():\n    return 1\n",
    "src/two.py": "def two():\n    return 2\n",
}


class Row(NamedTuple):
    """A saved program, the arguments that it is called with, and its value."""

    function: str
    parameters: str
    body: str
    given: dict[str, Any]
    value: Any
    top: str = ""
    is_async: bool = False

    @property
    def text(self) -> str:
        """The file."""
        lines = "\n".join(f"    {line}" if line else "" for line in self.body.split("\n"))
        doc = f'    """{self.function.replace("_", " ").capitalize()}."""'
        return f"{self.top}{'async ' * self.is_async}def {self.function}({self.parameters}):\n{doc}\n{lines}\n"

    @property
    def call(self) -> str:
        """The call, as another program writes it."""
        return (
            f"p_{self.function}.{self.function}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"
        )


ROWS = [
    Row("count_lines", "path: str", "return len(file.read(path=path).splitlines())", {"path": "notes/a.md"}, 3),
    Row("list_names", "path: str = '.'", "return sorted(e['name'] for e in file.list(path=path))", {"path": "notes"}, ["a.md", "b.md"]),
    Row("find_todos", "folder: str, word: str = 'TODO'",
        "found = []\nfor name in sorted(file.glob(pattern=folder + '/*.md')):\n    for line in file.read(path=name).splitlines():\n"
        "        if word in line:\n            found.append(line.split(': ')[1])\nreturn found",
        {"folder": "notes"}, ["call Ann", "write", "read"]),
    Row("sum_column", "path: str, column: str",
        "rows = [line.split(',') for line in file.read(path=path).splitlines() if line]\nat = rows[0].index(column)\n"
        "return sum(int(row[at]) for row in rows[1:])", {"path": "data/rows.csv", "column": "size"}, 8),
    Row("read_at", "path: str, keys: list",
        "value = json.loads(file.read(path=path))\nfor key in keys:\n    value = value[key]\nreturn value",
        {"path": "data/tree.json", "keys": ["a", "b", 1]}, 2, "import json\n\n\n"),
    Row("head_of", "path: str, most: int = 9", "return file.read(path=path).splitlines()[:min(most, LIMIT)]",
        {"path": "notes/b.md", "most": 5}, ["# Second", "TODO: write"], "LIMIT = 2\n\n\n"),
    Row("write_then_read", "path: str, text: str", "file.write(path=path, content=text)\nreturn file.read(path=path)",
        {"path": "out/made.txt", "text": "made"}, "made"),
    Row("append_twice", "path: str", "file.write(path=path, content='a')\nfile.write(path=path, content='b', append=True)\nreturn file.read(path=path)",
        {"path": "out/twice.txt"}, "ab"),
    Row("edit_word", "path: str, old: str, new: str",
        "file.write(path=path, content='one two')\nfile.edit(path=path, old=old, new=new)\nreturn file.read(path=path)",
        {"path": "out/edit.txt", "old": "two", "new": "three"}, "one three"),
    Row("defined", "folder: str", "names = sorted(file.glob(pattern=folder + '/*.py'))\n"
        "return [m for name in names for m in re.findall(r'def ([a-z]+)', file.read(path=name))]",
        {"folder": "src"}, ["one", "two"], "import re\n\n\n"),
    Row("read_all", "paths: list", "texts = await asyncio.gather(*[file.read(path=p) for p in paths])\nreturn [len(t) for t in texts]",
        {"paths": ["src/one.py", "src/two.py"]}, [36, 24], "import asyncio\n\n\n", True),
    Row("one_after_another", "paths: list", "found = []\nfor p in paths:\n    found.append(len(await file.read(path=p)))\nreturn found",
        {"paths": ["src/one.py"]}, [36], "", True),
    Row("is_there", "path: str", "try:\n    file.info(path=path)\nexcept FileNotFoundError:\n    return False\nreturn True",
        {"path": "nowhere"}, False),
    Row("open_it", "path: str", "with open(path) as stream:\n    return stream.read()[:7]", {"path": "notes/a.md"}, "# First"),
    Row("copy_it", "source: str, target: str", "file.copy(source=source, target=target, overwrite=True)\nreturn file.read(path=target)[:7]",
        {"source": "notes/a.md", "target": "out/copy.md"}, "# First"),
    Row("search_words", "pattern: str", "return len(file.search(pattern=pattern, path='notes'))", {"pattern": "TODO"}, 3),
    Row("grouped", "words: list", "found = {}\nfor word in words:\n    found.setdefault(word[0], []).append(word)\nreturn found",
        {"words": ["ab", "ac", "b"]}, {"a": ["ab", "ac"], "b": ["b"]}),
    Row("remember", "text: str", "return text in memory.read(id=memory.write(text=text)['id'])['text']", {"text": "violet"}, True),
    Row("versions", "", "return ot.version().count('.') >= 1", {}, True),
    Row("which_packs", "names: list", "known = ot.packs(info='list')\nreturn [n for n in names if n in known]",
        {"names": ["file", "git", "nothing"]}, ["file", "git"]),
    Row("with_helper", "number: int", "return _twice(number) + 1", {"number": 4}, 9, "def _twice(number):\n    return number * 2\n\n\n"),
    Row("calls_another", "path: str", "return p_count_lines.count_lines(path=path) * 10", {"path": "notes/b.md"}, 30),
    Row("calls_itself", "number: int", "if number < 2:\n    return 1\nreturn number * p_calls_itself.calls_itself(number=number - 1)",
        {"number": 5}, 120),
    Row("text_of_lines", "name: str", "return TEXT.format(name=name)", {"name": "x"}, "x:\n  one\n two", "TEXT = '''{name}:\n  one\n two'''\n\n\n"),
    Row("nothing_at_all", "", "file.list(path='.')", {}, None),
]  # fmt: skip
