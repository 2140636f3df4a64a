"""The bundled pack ``rg``, in its real worker with the real ripgrep."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from code_app import CodeApp, code_app, example_calls
from ot.build import IN_WORKERS

SOURCE = IN_WORKERS / "rg/rg_tools.py"
EXAMPLES = example_calls(SOURCE)
FILES = {
    ".gitignore": "ignored.txt\nbuild/\n",
    ".dotted.txt": "apple in a dotted file\n",
    ".git/config": "apple in git\n",
    "app.py": 'def main():\n    # TODO: peel\n    print("apple")\n\n\nmain()\n',
    "build/out.txt": "apple that was built\n",
    "ignored.txt": "apple that is ignored\n",
    "notes.md": "# Fruit\nApple and apple\npear\n",
    "src/a.ts": "const apple = 1;\nexport { apple };\n",
    "src/b (1).ts": "const pear = 'äpple apple';\r\n",
    "src/deep/c.rs": "fn apple() {}\n",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeApp]:
    with code_app(tmp_path_factory.mktemp("rg"), rg={"max_bytes": 200_000}) as app:
        app.write(FILES)
        (app.directory / "latin.txt").write_bytes(b"caf\xe9 apple\n")
        (app.directory / "binary.bin").write_bytes(b"apple\0apple\n")
        (app.directory / "long.min.js").write_text("x" * 50_000 + "apple" + "y" * 50_000)
        (app.directory / "large.txt").write_text("apple\n" * 100_000)
        yield app


def places(found: list[dict[str, Any]]) -> list[str]:
    return [f"{each['path']}:{each['line']}" for each in found]


# ---------------------------------------------------------------- the pack


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_the_rg_tool_runs(app: CodeApp, name: str) -> None:
    assert EXAMPLES[name].startswith(f"rg.{name}(")
    assert app.value(EXAMPLES[name])


def test_a_match_has_its_place_its_text_and_its_parts(app: CodeApp) -> None:
    (found,) = app.value('rg.search(pattern="[aA]pple", path="notes.md")')
    assert found == {
        "path": "notes.md",
        "line": 2,
        "column": 1,
        "text": "Apple and apple",
        "matched": ["Apple", "apple"],
    }


def test_matches_come_by_path_from_all_text_files_that_are_not_ignored(app: CodeApp) -> None:
    found = app.value('rg.search(pattern="apple")')
    expected = ["app.py:3", "latin.txt:1", "long.min.js:1", "notes.md:2", "src/a.ts:1", "src/a.ts:2"]
    assert places(found) == [*expected, "src/b (1).ts:1", "src/deep/c.rs:1"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param('pattern="APPLE", ignore_case=True, glob="*.md"', ["notes.md:2"], id="in any case"),
        pytest.param('pattern="main()", fixed=True', ["app.py:1", "app.py:6"], id="plain text"),
        pytest.param(
            'pattern="pear", word=True, types=["md", "ts"]',
            ["notes.md:3", "src/b (1).ts:1"],
            id="whole words",
        ),
        pytest.param('pattern="appl", word=True', [], id="half a word"),
        pytest.param(r'pattern="peel\n.*apple", multiline=True', ["app.py:2"], id="over several lines"),
        pytest.param(
            'pattern="apple", path="src"',
            ["src/a.ts:1", "src/a.ts:2", "src/b (1).ts:1", "src/deep/c.rs:1"],
            id="below a directory",
        ),
        pytest.param('pattern="apple", path="./src/deep/"', ["./src/deep/c.rs:1"], id="a path as it was written"),
        pytest.param(
            'pattern="apple", glob=["src/**", "!*.rs"], limit=2',
            ["src/a.ts:1", "src/a.ts:2"],
            id="globs and a limit",
        ),
        pytest.param('pattern="apple", types="rust"', ["src/deep/c.rs:1"], id="a type"),
        pytest.param('pattern="apple", glob="**/*", limit=1', ["app.py:3"], id="a glob for everything is none"),
        pytest.param(
            'pattern="dotted|build|git", hidden=True',
            [".dotted.txt:1", ".gitignore:2"],
            id="dotted files but not git",
        ),
        pytest.param('pattern="built|ignored", ignored=True', ["build/out.txt:1", "ignored.txt:1"], id="ignored files"),
        pytest.param('pattern="pear", glob="./src/*"', ["src/b (1).ts:1"], id="a glob that begins with a dot"),
        pytest.param('pattern="apple", glob=["*.md", "!./notes.md"]', [], id="a glob against one with a dot"),
        pytest.param('pattern="built", path="build/out.txt"', ["build/out.txt:1"], id="an ignored file by its name"),
    ],
)
def test_search_finds_the_lines_its_arguments_ask_for(app: CodeApp, arguments: str, expected: list[str]) -> None:
    found = app.value(f"rg.search({arguments})")
    assert places(found) == expected


def test_context_gives_the_lines_around_a_match(app: CodeApp) -> None:
    (found,) = app.value('rg.search(pattern="TODO", context=2)')
    assert found["before"] == ["def main():"]
    assert found["after"] == ['    print("apple")', ""]


def test_matches_next_to_each_other_are_each_others_context(app: CodeApp) -> None:
    first, second = app.value('rg.search(pattern="apple", path="src/a.ts", context=1)')
    assert first["after"] == [second["text"]]
    assert second["before"] == [first["text"]]


def test_columns_count_characters_and_line_ends_are_no_text(app: CodeApp) -> None:
    (found,) = app.value('rg.search(pattern=" apple", path="src/b (1).ts")')
    assert (found["column"], found["text"]) == (20, "const pear = 'äpple apple';")


def test_a_line_that_is_not_utf8_is_shown_as_far_as_it_is(app: CodeApp) -> None:
    assert app.value('rg.search(pattern="apple", glob="latin.txt")[0]["text"]') == "caf\ufffd apple"


def test_of_a_long_line_the_part_with_the_match_is_returned(app: CodeApp) -> None:
    (found,) = app.value('rg.search(pattern="apple", glob="long*")')
    assert len(found["text"]) == 500
    assert "apple" in found["text"]
    assert found["column"] == 50_001


def test_counts_are_of_matches_by_file(app: CodeApp) -> None:
    counts = app.value('rg.count(pattern="apple", ignore_case=True, types=["md", "ts"])')
    assert counts == [
        {"path": "notes.md", "count": 2},
        {"path": "src/a.ts", "count": 2},
        {"path": "src/b (1).ts", "count": 1},
    ]
    assert app.value('rg.count(pattern="apple", path="notes.md")') == [{"path": "notes.md", "count": 1}]
    assert len(app.value('rg.count(pattern="apple", limit=2)')) == 2


@pytest.mark.parametrize("pattern", ["aa", "a", "a.", "^a", "b+", "[ab]$", "a?b", "(?i)A|b"])
def test_a_count_is_what_python_counts_line_by_line(app: CodeApp, pattern: str) -> None:
    texts = {"counted/a.txt": "aaa a\naa\n\nba\n", "counted/b.txt": "a a\nab", "counted/c.txt": "xyz\n"}
    app.write(texts)
    counts = {path: sum(len(re.findall(pattern, line)) for line in text.splitlines()) for path, text in texts.items()}
    wanted = [{"path": path, "count": count} for path, count in counts.items() if count]
    assert app.value(f"rg.count(pattern={pattern!r}, path='counted')") == wanted
    found = app.value(f"rg.search(pattern={pattern!r}, path='counted')")
    assert sum(len(each["matched"]) for each in found) == sum(counts.values())


def test_a_file_with_a_nul_is_text_only_if_it_is_named(app: CodeApp) -> None:
    (app.directory / "late.dat").write_bytes(b"late-nul\n" + b"x" * 79 + b"\n" * 150_000 + b"\0 late-nul\nlate-nul\n")
    assert app.value('[rg.search(pattern="late-nul"), rg.count(pattern="late-nul")]') == [[], []]
    found = app.value('rg.search(pattern="late-nul", path="late.dat")')
    assert [(each["line"], each["column"]) for each in found] == [(1, 1), (150_002, 3), (150_003, 1)]
    assert app.value('rg.count(pattern="late-nul", path="late.dat")[0]["count"]') == 3


def test_a_file_of_wide_characters_is_searched_if_it_is_named(app: CodeApp) -> None:
    (app.directory / "wide.txt").write_text("one\näpple\n", encoding="utf-16")
    (found,) = app.value('rg.search(pattern="äpple", path="wide.txt")')
    assert (found["line"], found["text"]) == (2, "äpple")


def test_the_first_line_after_a_byte_order_mark_is_found(app: CodeApp) -> None:
    (app.directory / "marked.txt").write_text("marked-word\n", encoding="utf-8-sig")
    assert places(app.value('rg.search(pattern="marked-word")')) == ["marked.txt:1"]


def test_files_are_those_that_a_search_would_look_at(app: CodeApp) -> None:
    assert app.value('rg.files(path="src")') == ["src/a.ts", "src/b (1).ts", "src/deep/c.rs"]
    assert app.value('rg.files(glob="*.{md,py}")') == ["app.py", "notes.md"]
    listed = app.value("rg.files(hidden=True, ignored=True)")
    assert {".dotted.txt", "build/out.txt", "ignored.txt"} < {*listed}
    assert not [path for path in listed if path.startswith(".git/")]


def test_types_have_their_globs(app: CodeApp) -> None:
    assert "*.py" in app.value('rg.types()["py"]')


# ---------------------------------------------------------------- errors and limits


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param('search(pattern="(")', "ValueError: regex parse error", id="a wrong expression"),
        pytest.param('search(pattern="(?=a)")', "look-around", id="look-around"),
        pytest.param(r'search(pattern="a\nb")', "not allowed in a regex: give multiline=True", id="a line end"),
        pytest.param('search(pattern="")', "pattern must not be empty", id="an empty pattern"),
        pytest.param('search(pattern="a" * 10_001)', "10,001 characters, more than 10,000", id="a huge pattern"),
        pytest.param('search(pattern="a", types="fruit")', "unrecognized file type: fruit", id="an unknown type"),
        pytest.param('search(pattern="a", glob="a{b")', "error parsing glob", id="a wrong glob"),
        pytest.param('search(pattern="a", glob=["*.x"] * 101)', "glob may hold at most 100 texts", id="many globs"),
        pytest.param('search(pattern="a", limit=0)', "limit must be >= 1, got 0", id="no limit"),
        pytest.param('search(pattern="a", context=21)', "context must be 0 to 20, got 21", id="much context"),
        pytest.param('search(pattern="a", path="none")', "FileNotFoundError: 'none' does not exist", id="no such path"),
        pytest.param(
            'search(pattern="a", path="large.txt")',
            "more than 200,000 (tools.rg.max_bytes)",
            id="a large file",
        ),
        pytest.param('files(path="app.py")', "NotADirectoryError: 'app.py'", id="the files of a file"),
    ],
)
def test_it_is_said_what_is_wrong_with(app: CodeApp, call: str, expected: str) -> None:
    said = app.error(f"rg.{call}")
    assert expected in said
    assert "flag" not in said


def test_a_search_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with code_app(tmp_path, rg={"search_seconds": 0.001}) as app:
        app.write({f"{number}.txt": "apple\n" * 1_000 for number in range(50)})
        assert "TimeoutError: not done after 0.001 s (tools.rg.search_seconds)" in app.error(
            'rg.search(pattern="pear")'
        )
