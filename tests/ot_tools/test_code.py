"""The bundled pack ``code``, in its real worker with the real parsers, over one file of every language."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from answers import YES, User
from callers import asking
from code_app import CodeApp, code_app, example_calls
from ot.build import IN_WORKERS


@dataclass(frozen=True)
class Sample:
    """Code, its symbols as ``kind inside.name``, and its references to ``target`` and ``dep``."""

    text: str
    symbols: list[str]
    references: list[str]


SAMPLES = {
    "py": Sample(
        'from lib import dep\n\n\ndef target():\n    """target"""\n\n\nclass Box:\n'
        "    async def put(self):\n        target()\n        return self.target(dep)\n",
        ["function target", "class Box", "method Box.put"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in Box.put",
            "call target in Box.put",
            "use dep in Box.put",
        ],
    ),
    "js": Sample(
        "import { dep } from 'lib';\nexport function target() {}\nconst arrow = () => target();\n"
        "class Box { put() { this.target(dep); } field = () => 'target'; }\n",
        ["function target", "function arrow", "class Box", "method Box.put", "method Box.field"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in arrow",
            "call target in Box.put",
            "use dep in Box.put",
        ],
    ),
    "ts": Sample(
        "interface Shape { area(): number }\ntype Name = string;\nenum Color { Red }\n"
        "abstract class Box<T> { put(x: T): void { target<T>(x); } }\n"
        "namespace inner { function target<T>(x: T) {} }\n",
        [
            "interface Shape",
            "type Name",
            "enum Color",
            "class Box",
            "method Box.put",
            "module inner",
            "function inner.target",
        ],
        ["call target in Box.put", "definition target in inner"],
    ),
    "tsx": Sample(
        "export const target = (x: number) => <b>{dep(x)}</b>;\n",
        ["function target"],
        ["definition target in the file", "call dep in target"],
    ),
    "go": Sample(
        'package a\n\nimport dep "lib"\n\ntype Box struct{}\ntype Shape interface{ Area() int }\n'
        "func (b *Box) Put() { target(); dep.Run() }\nfunc target() {}\n",
        ["struct Box", "interface Shape", "method Box.Put", "function target"],
        ["import dep in the file", "call target in Box.Put", "use dep in Box.Put", "definition target in the file"],
    ),
    "rs": Sample(
        "use lib::dep;\nstruct Box<T>(T);\ntrait Shape { fn area(&self); }\n"
        "impl<T> Box<T> { fn put(&self) { target::<u8>(dep); self.target(); } }\nfn target<T>(x: T) {}\n"
        "mod inner { macro_rules! twice { () => {} } }\n",
        [
            "struct Box",
            "trait Shape",
            "method Shape.area",
            "method Box.put",
            "function target",
            "module inner",
            "macro inner.twice",
        ],
        [
            "import dep in the file",
            "call target in Box.put",
            "use dep in Box.put",
            "call target in Box.put",
            "definition target in the file",
        ],
    ),
    "java": Sample(
        "import lib.dep;\nclass Box {\n  Box() { this.target(1); }\n"
        "  int target(int x) { return dep.get(target(x)); }\n"
        "  enum Color { RED }\n  record Pair(int a) {}\n}\ninterface Shape {}\n",
        ["class Box", "method Box.Box", "method Box.target", "enum Box.Color", "class Box.Pair", "interface Shape"],
        [
            "import dep in the file",
            "call target in Box.Box",
            "definition target in Box",
            "use dep in Box.target",
            "call target in Box.target",
        ],
    ),
    "c": Sample(
        "#include <lib.h>\nstruct box { int a; };\nenum color { RED };\nint target(int);\n"
        "static int *put(struct box *b) { return b->target(dep); }\nint target(int x) { return x; }\n",
        ["struct box", "enum color", "function put", "function target"],
        [
            "use target in the file",
            "call target in put",
            "use dep in put",
            "definition target in the file",
        ],
    ),
    "cpp": Sample(
        "namespace inner { template <typename T> T target(T a) { return a; } }\n"
        "class Box { public: void put() { inner::target(1); } void get(); };\nvoid Box::get() { dep->target(); }\n",
        ["module inner", "function inner.target", "class Box", "method Box.put", "method Box.get"],
        ["definition target in inner", "call target in Box.put", "use dep in Box.get", "call target in Box.get"],
    ),
    "cs": Sample(
        "using dep;\nnamespace Inner {\n"
        "  class Box { Box() { target(1); } int target(int x) { return this.target(x); } }\n"
        "  struct Point {}\n  interface IShape {}\n  enum Color {}\n}\n",
        ["class Box", "method Box.Box", "method Box.target", "struct Point", "interface IShape", "enum Color"],
        [
            "import dep in the file",
            "call target in Box.Box",
            "definition target in Box",
            "call target in Box.target",
        ],
    ),
    "kt": Sample(
        "import lib.dep\n\nfun target(x: Int): Int { return dep(x) }\nclass Box { fun put() = other.target(1) }\n"
        "interface Shape\n",
        ["function target", "class Box", "method Box.put", "interface Shape"],
        [
            "import dep in the file",
            "definition target in the file",
            "call dep in target",
            "call target in Box.put",
        ],
    ),
    "swift": Sample(
        "import dep\nfunc target(x: Int) -> Int { return x }\nclass Box { func put() { target(x: 1) } }\n"
        "struct Point {}\nprotocol Shape {}\n",
        ["function target", "class Box", "method Box.put", "struct Point", "interface Shape"],
        ["import dep in the file", "definition target in the file", "call target in Box.put"],
    ),
    "php": Sample(
        "<?php\nuse lib\\dep;\nfunction target($x) { return $x; }\n"
        "class Box { function put() { target(1); $this->target(2); Box::target(3); } }\n"
        "interface Shape {}\ntrait Able {}\n",
        ["function target", "class Box", "method Box.put", "interface Shape", "trait Able"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in Box.put",
            "call target in Box.put",
            "call target in Box.put",
        ],
    ),
    "rb": Sample(
        "def target(x)\n  dep(x)\nend\n\nmodule Inner\n  class Box\n    def put\n      other.target(1)\n    end\n\n"
        "    def self.make\n    end\n  end\nend\n",
        ["function target", "module Inner", "class Inner.Box", "method Inner.Box.put", "method Inner.Box.make"],
        ["definition target in the file", "call dep in target", "call target in Inner.Box.put"],
    ),
    "scala": Sample(
        "import lib.dep\nobject Tools { def target(x: Int) = dep(x) }\n"
        "class Box { def put() = Tools.target(1) }\ntrait Shape\n",
        ["object Tools", "method Tools.target", "class Box", "method Box.put", "trait Shape"],
        [
            "import dep in the file",
            "definition target in Tools",
            "call dep in Tools.target",
            "call target in Box.put",
        ],
    ),
    "lua": Sample(
        "local function target(x) return dep(x) end\nfunction Box.put() Box.target(1) end\n",
        ["function target", "method Box.put"],
        ["definition target in the file", "call dep in target", "call target in Box.put"],
    ),
    "sh": Sample(
        "target() { dep 1; }\nfunction put { target; }\n",
        ["function target", "function put"],
        ["definition target in the file", "call dep in target", "call target in put"],
    ),
}


SOURCE = IN_WORKERS / "code/code_tools.py"
EXAMPLES = example_calls(SOURCE)
SHOP = '''
from math import floor


def total(items):
    print(items)
    return sum(items)


class Shop:
    def sell(self, é):
        """total"""
        self.log(print(total(é)), 1)  # total
        return total


x = print(print(1))
'''.lstrip()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeApp]:
    with code_app(tmp_path_factory.mktemp("code")) as app:
        app.write({"shop.py": SHOP, ".gitignore": "skipped.py\n", "skipped.py": "def total(): ...\n"})
        app.write({f"samples/sample.{extension}": sample.text for extension, sample in SAMPLES.items()})
        (app.directory / "latin.py").write_bytes(b"def caf\xe9(): ...\n")
        (app.directory / "large.py").write_text("x = 1\n" * 200_000)
        yield app


@pytest.fixture(scope="module")
def sample_symbols(app: CodeApp) -> list[dict[str, Any]]:
    return app.value('code.symbols(path="samples")')


@pytest.fixture(scope="module")
def sample_references(app: CodeApp) -> list[dict[str, Any]]:
    return app.value('code.references(name=["target", "dep"], path="samples")')


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_the_code_tool_runs(app: CodeApp, name: str) -> None:
    assert EXAMPLES[name].startswith(f"code.{name}(")
    assert app.value(EXAMPLES[name])
    assert (app.directory / "shop.py").read_text() == SHOP


# ---------------------------------------------------------------- symbols and names, in each language


@pytest.mark.parametrize("extension", SAMPLES)
def test_symbols_are_found_in_files_named(sample_symbols: list[dict[str, Any]], extension: str) -> None:
    found = [each for each in sample_symbols if each["path"] == f"samples/sample.{extension}"]
    said = [f"{each['kind']} {each['inside'] + '.' if each['inside'] else ''}{each['name']}" for each in found]
    assert said == SAMPLES[extension].symbols


@pytest.mark.parametrize("extension", SAMPLES)
def test_references_are_told_apart_in_files_named(sample_references: list[dict[str, Any]], extension: str) -> None:
    found = [each for each in sample_references if each["path"] == f"samples/sample.{extension}"]
    said = [f"{each['kind']} {each['name']} in {each['inside'] or 'the file'}" for each in found]
    assert said == SAMPLES[extension].references


def test_a_symbol_has_its_lines_and_its_first_line(app: CodeApp) -> None:
    *_, sell = app.value('code.symbols(path="shop.py")')
    expected = {"path": "shop.py", "name": "sell", "kind": "method", "inside": "Shop", "line": 10, "end_line": 13}
    assert sell == {**expected, "signature": "def sell(self, é):"}


def test_definitions_are_those_of_the_names_in_files_that_are_not_ignored(app: CodeApp) -> None:
    found = app.value('code.definitions(name=["total", "sell"], glob="!samples/**")')
    assert [(each["path"], each["name"], each["line"]) for each in found] == [
        ("shop.py", "total", 4),
        ("shop.py", "sell", 10),
    ]


def test_of_no_names_there_are_no_definitions_and_no_references(app: CodeApp) -> None:
    assert app.value("[code.definitions(name=[]), code.references(name=[])]") == [[], []]


def test_references_leave_out_strings_and_comments(app: CodeApp) -> None:
    found = app.value('code.references(name="total", path="shop.py")')
    assert [(each["kind"], each["line"], each["column"]) for each in found] == [
        ("definition", 4, 5),
        ("call", 12, 24),
        ("use", 13, 16),
    ]
    assert found[1]["text"] == "self.log(print(total(é)), 1)  # total"
    assert found[1]["inside"] == "Shop.sell"


def test_files_that_are_not_utf8_or_too_large_are_left_out_or_refused_by_name(app: CodeApp) -> None:
    paths = {each["path"] for each in app.value('code.symbols(language="python")')}
    assert paths == {"samples/sample.py", "shop.py"}
    for path in ("latin.py", "large.py"):
        said = app.error(f"code.symbols(path={path!r})")
        assert f"{path!r} cannot be parsed: it is not UTF-8 text of at most 1,048,576 bytes" in said


def test_the_language_of_a_file_without_an_extension_can_be_said(app: CodeApp) -> None:
    app.write({"script": "def run(): ...\n"})
    assert "its language cannot be told from its name" in app.error('code.symbols(path="script")')
    assert [each["name"] for each in app.value('code.symbols(path="script", language="py")')] == ["run"]


def test_no_more_come_back_than_the_limit(app: CodeApp) -> None:
    assert len(app.value("code.symbols(limit=3)")) == 3
    assert len(app.value('code.references(name="target", limit=3)')) == 3
    assert len(app.value('code.search(pattern="print($A)", language="py", limit=2)')) == 2


def test_the_line_of_a_reference_is_that_of_the_file_also_after_blank_lines(app: CodeApp) -> None:
    app.write({"blank/a.py": "\n\n\ndef late(): ...\n\n\nlate()\n"})
    found = app.value('code.references(name="late", path="blank")')
    assert [(each["line"], each["text"]) for each in found] == [(4, "def late(): ..."), (7, "late()")]


def test_of_long_code_only_so_much_is_shown(app: CodeApp) -> None:
    app.write({"long/a.py": f"def long({'a' * 9000}): ...\nlong('{'a' * 9000}')\n"})
    program = """
(match,) = code.search(pattern="long($A)", language="py", path="long")
(many,) = code.search(pattern="long($$$A)", language="py", path="long")
(symbol,) = code.symbols(path="long")
places = code.references(name="long", path="long")
captured = [match["captures"]["A"], many["captures"]["A"][0]]
[match["text"], *captured, symbol["signature"], *[each["text"] for each in places]]
"""
    assert [len(text) for text in app.value(program)] == [2000, 2000, 2000, 200, 200, 200]


def test_a_name_that_is_only_an_extension_has_none(app: CodeApp) -> None:
    app.write({"bare/.py": "def bare(): ...\n"})
    assert app.value('code.symbols(path="bare", glob=".py")') == []


# ---------------------------------------------------------------- structural search and rewrite


def test_a_pattern_finds_code_and_what_its_variables_stand_for(app: CodeApp) -> None:
    app.write({"calls/a.py": "send(\n    to,\n    *more, key=1\n)\nsend()\n# send(x)\n"})
    found = app.value('code.search(pattern="send($FIRST, $$$REST)", language="python", path="calls")')
    captures = {"FIRST": "to", "REST": ["*more", "key=1"]}
    text = "send(\n    to,\n    *more, key=1\n)"
    assert found == [{"path": "calls/a.py", "line": 1, "end_line": 4, "column": 1, "text": text, "captures": captures}]


@pytest.mark.parametrize(
    ("language", "text", "pattern", "found"),
    [
        pytest.param("c", "int g(void) { f(1); return f(2); }\n", "f($A)", ["f(1)", "f(2)"], id="a call in C"),
        pytest.param("c", "int g(void) { f(1); return f(2); }\n", "f($A);", ["f(1);"], id="a statement in C"),
        pytest.param(
            "go",
            "package m\nfunc g() { fmt.Println(1); if a.b { return } }\n",
            "fmt.Println($A)",
            ["fmt.Println(1)"],
            id="a call in Go",
        ),
        pytest.param("go", "package m\nfunc g() { a.b = 1 }\n", "a.b", ["a.b"], id="a field in Go"),
        pytest.param(
            "go", "package m\nfunc g() { if a { b() } }\n", "if $A { $$$B }", ["if a { b() }"], id="a statement in Go"
        ),
    ],
)
def test_a_pattern_that_a_parser_alone_would_misread_is_found(
    app: CodeApp, language: str, text: str, pattern: str, found: list[str]
) -> None:
    app.write({f"misread/a.{language}": text})
    program = f"[each['text'] for each in code.search(pattern={pattern!r}, language={language!r}, path='misread')]"
    assert app.value(program) == found


def test_a_rewrite_shows_its_diff_and_writes_nothing(app: CodeApp) -> None:
    (found,) = app.value(
        'code.rewrite(pattern="print($A)", replacement="log($A, 2)", language="python", path="shop.py")'
    )
    assert (found["path"], found["count"], found["written"]) == ("shop.py", 4, False)
    assert "-x = print(print(1))\n+x = log(log(1, 2), 2)\n" in found["diff"]
    assert (app.directory / "shop.py").read_text() == SHOP
    applied = subprocess.run(
        ["git", "apply", "--check", "-"], input=found["diff"], cwd=app.directory, text=True, timeout=60, check=False
    )
    assert applied.returncode == 0


def test_a_rewrite_that_is_not_a_dry_run_changes_only_what_matches(app: CodeApp) -> None:
    app.write(
        {"mixed/a.py": "é = old(1)\r\nother(old)\r\nold(2, old(3))", "mixed/b.js": "old(1);\n", "mixed/c.py": "x\n"}
    )
    call = (
        'code.rewrite(pattern="old($$$ARGS)", replacement="new($$$ARGS)", language="py", path="mixed", dry_run=False)'
    )
    (found,) = app.value(call)
    assert (found["path"], found["count"], found["written"]) == ("mixed/a.py", 3, True)
    assert (app.directory / "mixed/a.py").read_bytes().decode() == "é = new(1)\r\nother(old)\r\nnew(2, new(3))"
    assert (app.directory / "mixed/b.js").read_text() == "old(1);\n"
    assert app.value(call) == []


def test_a_rewrite_asks_once_where_writing_asks_and_not_for_each_file(app: CodeApp) -> None:
    config = app.directory.parent / "user" / "onetool.yaml"
    before, user = config.read_text(), User(YES)
    app.write({"asked/a.py": "old(1)\n", "asked/b.py": "old(2)\n"})
    try:
        config.write_text(json.dumps(json.loads(before) | {"policy": {"ask": ["file.write"]}}))
        call = 'code.rewrite(pattern="old($A)", replacement="new($A)", language="py", path="asked", dry_run=False)'
        reply = app.reply(call, asking(user))
    finally:
        config.write_text(before)
    assert not reply.is_error, reply.texts
    assert [question.tool for question in user.questions] == ["code.rewrite"]
    assert [(app.directory / "asked" / name).read_text() for name in ("a.py", "b.py")] == ["new(1)\n", "new(2)\n"]


def test_a_comment_at_the_end_of_what_was_found_does_not_swallow_what_follows(app: CodeApp) -> None:
    app.write({"comments/a.py": "old(1,  # one\n    2,  # two\n    )\n"})
    app.value(
        'code.rewrite(pattern="old($$$A)", replacement="new($$$A)", language="py", path="comments", dry_run=False)'
    )
    assert (app.directory / "comments/a.py").read_text() == "new(1,  # one\n    2,  # two\n)\n"


@pytest.mark.parametrize(
    ("language", "text", "replacement"),
    [
        pytest.param("py", "old(1)\n", "new($A", id="a bracket in Python"),
        pytest.param("ts", "const a = 1; old(1); b();\n", "new($A", id="a bracket in TypeScript"),
        pytest.param("c", "int f(void) { return old(1); }\n", "new($A) +", id="an operand in C"),
    ],
)
def test_a_rewrite_to_code_that_does_not_parse_is_refused_for_want_of(
    app: CodeApp, language: str, text: str, replacement: str
) -> None:
    path = f"broken/a.{language}"
    app.write({path: text})
    said = app.error(
        f'code.rewrite(pattern="old($A)", replacement="{replacement}", language="{language}", path="broken")'
    )
    assert f"replacement makes code that does not parse, in '{path}'" in said


def test_a_file_that_did_not_parse_before_is_rewritten_all_the_same(app: CodeApp) -> None:
    app.write({"odd/a.py": "old(1)\ndef (:\n"})
    (found,) = app.value('code.rewrite(pattern="old($A)", replacement="new($A)", language="py", path="odd")')
    assert "+new(1)\n" in found["diff"]


def test_a_match_that_only_begins_inside_a_variable_is_not_rewritten(app: CodeApp) -> None:
    app.write({"begins/a.py": "x + 1 + 1 + 1\n"})
    (found,) = app.value('code.rewrite(pattern="$A + 1 + 1", replacement="$A + 2", language="py", path="begins")')
    assert "+x + 1 + 2\n" in found["diff"]


@pytest.mark.parametrize("variable", ["$_", "$$$", "$_ARGS", "$$$_ARGS"])
def test_a_variable_that_keeps_nothing_is_not_written_as_nothing(app: CodeApp, variable: str) -> None:
    app.write({"nameless/a.js": "old(1);\n"})
    what = f'pattern="old({variable})", replacement="new({variable})", language="js", path="nameless"'
    assert f"{variable} captures nothing for the replacement" in app.error(f"code.rewrite({what})")


def test_a_replacement_of_several_lines_takes_the_line_ends_of_the_file(app: CodeApp) -> None:
    app.write({"ends/a.py": "old(1)\r\n", "ends/b.py": "old(1)\n"})
    app.value(r'code.rewrite(pattern="old($A)", replacement="new(\n$A)", language="py", path="ends", dry_run=False)')
    assert (app.directory / "ends/a.py").read_bytes() == b"new(\r\n1)\r\n"
    assert (app.directory / "ends/b.py").read_bytes() == b"new(\n1)\n"


def test_a_rewrite_of_more_files_than_the_limit_writes_none(app: CodeApp) -> None:
    app.write({f"many/{number}.py": "old(1)\n" for number in range(3)})
    call = 'code.rewrite(pattern="old($A)", replacement="new($A)", language="py", path="many", dry_run=False, limit=2)'
    assert "more than 2 files would change" in app.error(call)
    assert {path.read_text() for path in (app.directory / "many").iterdir()} == {"old(1)\n"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(
            'symbols(language="cobol")', "language must be one of python, javascript", id="an unknown language"
        ),
        pytest.param('references(name="a.b")', "'a.b' is not a name", id="a dotted name"),
        pytest.param('references(name=["a"] * 10_001)', "name may be at most 10,000 names", id="too many names"),
        pytest.param('search(pattern="a; b", language="py")', "is not one piece of code", id="two statements"),
        pytest.param('search(pattern=" ", language="py")', "pattern must not be empty", id="a blank pattern"),
        pytest.param(
            'search(pattern="x" * 2001, language="py")', "2,001 characters, more than 2,000", id="a huge pattern"
        ),
        pytest.param(
            'rewrite(pattern="f($A)", replacement="$B", language="py")',
            "replacement names $B",
            id="an unknown variable",
        ),
        pytest.param('search(pattern="f($A)", language="py", limit=0)', "limit must be >= 1, got 0", id="no limit"),
        pytest.param('symbols(path="none")', "FileNotFoundError: 'none' does not exist", id="no such path"),
        pytest.param(
            'rewrite(pattern="f($A)", replacement="g", language="py", dry_run=0)',
            "dry_run must be True",
            id="a false dry run",
        ),
    ],
)
def test_it_is_said_what_is_wrong_with_the_call(app: CodeApp, call: str, expected: str) -> None:
    assert expected in app.error(f"code.{call}")


def test_a_call_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with code_app(tmp_path, code={"search_seconds": 0.001}) as app:
        app.write({f"{number}.py": SHOP for number in range(5)})
        assert "(tools.code.search_seconds)" in app.error("code.symbols()")


# ---------------------------------------------------------------- files that no parser takes well


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("calls.py", "f(" * 100_000 + ")" * 100_000, id="calls in calls"),
        pytest.param("blocks.py", "".join(" " * depth + "if x:\n" for depth in range(900)), id="blocks in blocks"),
        pytest.param("lists.js", "[" * 500_000, id="lists without an end"),
        pytest.param("functions.js", "function f(){" * 50_000, id="functions in functions"),
        pytest.param("sum.py", "+".join("a" for _ in range(100_000)), id="a long sum"),
    ],
)
def test_a_deeply_nested_file_does_not_end_the_worker(app: CodeApp, name: str, text: str) -> None:
    app.write({f"deep-{name}/{name}": text, f"deep-{name}/plain.py": "def plain(): f(1)\n"})
    assert "plain" in {each["name"] for each in app.value(f'code.symbols(path="deep-{name}", limit=100_000)')}
    found = app.value(f'code.search(pattern="f(1)", language="python", path="deep-{name}")')
    assert [each["path"] for each in found] == [f"deep-{name}/plain.py"]


def test_a_file_that_takes_all_memory_is_left_out_or_refused_by_name(app: CodeApp) -> None:
    app.write({"generics/many.cs": "a<" * 100_000, "generics/plain.cs": "class Plain {}\n"})
    assert [each["name"] for each in app.value('code.symbols(path="generics")')] == ["Plain"]
    assert "'generics/many.cs' cannot be parsed" in app.error('code.symbols(path="generics/many.cs")')


def test_matches_too_deep_inside_each_other_are_not_rewritten(app: CodeApp) -> None:
    app.write({"nested/a.py": "f(" * 200 + "1" + ")" * 200})
    said = app.error('code.rewrite(pattern="f($A)", replacement="g($A)", language="py", path="nested")')
    assert "more than 50 matches lie inside each other" in said
