"""Parts of the packs ``rg`` and ``code`` in this process, with other programs in place of ripgrep and the parser."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ot.build import IN_WORKERS
from ot_sdk import testing
from ot_sdk.files import OpenDirectory

MODULES = (
    *("arguments", "open_tree", "ripgrep_run", "rg_matches", "rg_tools"),
    *("code_languages", "code_files", "code_process", "code_tools", "code_definitions", "code_patterns", "code_parser"),
)
LATE = "import time, pathlib; time.sleep(10); pathlib.Path({!r}).touch()"
"""A program that is to be stopped before it is done."""


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The packs' own modules; of the parser's library they need only the names."""
    for name in ("_shared", "rg", "code"):
        monkeypatch.syspath_prepend(IN_WORKERS / name)
    library = SimpleNamespace(SgNode=object, SgRoot=lambda *_: SimpleNamespace(root=lambda: None))
    monkeypatch.setitem(sys.modules, "ast_grep_py", library)
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        del sys.modules[name]


# ---------------------------------------------------------------- what ripgrep says


def test_of_a_huge_match_only_so_much_is_returned(parts: Any) -> None:
    one = {"match": {"text": "x" * 9000}, "start": 0, "end": 9000}
    messages = [
        {"type": "context", "lines": {"text": "y" * 9000 + "\n"}, "line_number": 1},
        {"type": "match", "lines": {"text": "x" * 9000 + "\n"}, "line_number": 2, "submatches": [one] * 200},
        {"type": "match", "lines": {"text": "x\n" * 9000}, "line_number": 3, "submatches": [one]},
        {"type": "end"},
    ]
    file = parts.ripgrep_run.OneFile(BytesIO(), "a.txt")
    line, lines = parts.rg_matches.file_matches(messages, file, 1)
    assert (len(line.text), len(line.matched), len(line.matched[0])) == (500, 100, 500)
    assert [len(text) for text in line.before] == [500]
    assert len(lines.text) == 2000


@contextmanager
def opened(parts: Any, directory: Path, hidden: tuple[str, ...] = ()) -> Generator[Any]:
    """Give *directory* as a tree, of which the *hidden* paths are not shown."""
    fd = os.open(directory, os.O_RDONLY)
    with OpenDirectory(fd, str(directory), hidden) as found, parts.open_tree.OpenTree(found, ".") as tree:
        yield tree


@pytest.fixture
def tree(parts: Any, tmp_path: Path) -> Iterator[Any]:
    """A directory with a file, and a link to it."""
    directory = tmp_path / "tree"
    directory.mkdir()
    (directory / "a.txt").write_text("text")
    (directory / "link.txt").symlink_to("a.txt")
    with opened(parts, directory, ("a{b", "c")) as tree:
        yield tree


@pytest.fixture
def ripgrep(parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a ripgrep that runs another program."""

    def make(program: str, seconds: float = 60) -> Any:
        script = tmp_path / "rg"
        script.write_text(f"#!{sys.executable} -I\nimport os, sys\n{program}\n")
        script.chmod(0o700)
        monkeypatch.setattr(parts.ripgrep_run, "_program", lambda: str(script))
        return parts.ripgrep_run.Ripgrep(parts.ripgrep_run.SearchLimits("rg", 1000, seconds))

    return make


def test_ripgrep_gets_no_variable_of_ours(ripgrep: Callable[..., Any], tree: Any) -> None:
    program = ripgrep(r"sys.stdout.write('\0'.join(os.environ))")
    assert {*program.relative_paths([], tree)} == {"PATH", "LC_ALL"}


def test_ripgrep_is_spared_the_way_into_what_is_hidden(ripgrep: Callable[..., Any], tree: Any) -> None:
    program = ripgrep(r"sys.stdout.write('\0'.join(sys.argv))")
    globs = [each for each in program.relative_paths([], tree) if each.startswith("--glob=")]
    assert globs == ["--glob=!.git", "--glob=!.onetool", r"--glob=!/a\{b", "--glob=!/c"]


def test_what_ripgrep_says_of_a_link_is_not_believed(ripgrep: Callable[..., Any], tree: Any, parts: Any) -> None:
    assert [*ripgrep(r"print('./a.txt\0./link.txt\0', end='')").paths([], tree)] == ["a.txt"]
    assert [*ripgrep(r"print('./a.txt\0002\n./link.txt\0003')").counts([], tree)] == [("a.txt", 2)]
    message = {"lines": {"text": "text"}, "line_number": 1, "absolute_offset": 0, "submatches": []}
    messages = [{"path": {"text": "./link.txt"}}, message | {"type": "match"}, {"type": "end"}]
    assert [*parts.rg_matches.file_matches(messages, tree, 0)] == []


def test_a_count_that_is_not_a_number_counts_for_nothing(ripgrep: Callable[..., Any], tree: Any) -> None:
    assert [*ripgrep(r"print('./a.txt\0binary file')").counts([], tree)] == []


def test_more_output_than_the_memory_is_for_is_refused(
    ripgrep: Callable[..., Any], tree: Any, parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts.ripgrep_run, "MAX_OUTPUT", 10)
    with pytest.raises(ValueError, match=r"too many files \(over 10 bytes\)"):
        list(ripgrep("print('a.txt\\0' * 10)").paths([], tree))


def test_of_a_long_complaint_the_beginning_is_told(ripgrep: Callable[..., Any], tree: Any) -> None:
    with pytest.raises(ValueError, match=r"^x{2000}$"):
        list(ripgrep("sys.stderr.write('x' * 9000); sys.exit(2)").paths([], tree))


def test_ripgrep_is_stopped_when_its_time_is_over(ripgrep: Callable[..., Any], tree: Any, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"tools\.rg\.search_seconds"):
        list(ripgrep(LATE.format(str(tmp_path / "done")), seconds=0.1).paths([], tree))
    assert not (tmp_path / "done").exists()


def test_ripgrep_is_stopped_when_no_more_is_wanted(ripgrep: Callable[..., Any], tree: Any, tmp_path: Path) -> None:
    said = """print('{"type": "end", "data": {}}', flush=True)\n"""
    found = ripgrep(said + LATE.format(str(tmp_path / "done"))).files_with_matches([], tree)
    assert next(found) == [{"type": "end"}]
    found.close()
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("text", ["", "x" * 1001, "a\0", 1], ids=["empty", "too long", "a NUL", "a number"])
def test_what_cannot_be_an_option_is_refused(parts: Any, text: Any) -> None:
    for options in (
        lambda: parts.ripgrep_run.file_options([text]),
        lambda: parts.ripgrep_run.file_options(None, [text]),
    ):
        with pytest.raises((TypeError, ValueError), match=r"^(glob|types) "):
            options()


def test_a_limit_of_ripgreps_tools_is_at_least_one(parts: Any) -> None:
    for call in (lambda: parts.rg_tools.count(pattern="a", limit=0), lambda: parts.rg_tools.files(limit=0)):
        with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
            call()


def test_no_more_files_than_the_limit_are_listed(ripgrep: Callable[..., Any], parts: Any, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    ripgrep(r"print('./a\0./b\0./c\0', end='')")
    with testing.use(config=parts.rg_tools.Config(), files=tmp_path):
        assert parts.rg_tools.files(limit=2) == ["a", "b"]


def test_an_open_tree_closes_what_it_opens(tree: Any, tmp_path: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir()
    (tmp_path / "tree" / "inner" / "a.txt").touch()
    places = {path.lstat().st_ino for path in tmp_path.rglob("*")}
    before = open_files(places)
    for relative in ("a.txt", "inner/a.txt", "inner", "inner/none", "link.txt"):
        with tree.open(relative):
            pass
    assert open_files(places) == before


def open_files(places: set[int]) -> int:
    """Return how often one of *places* is open."""
    found = 0
    for number in range(256):
        with suppress(OSError):
            found += os.fstat(number).st_ino in places
    return found


# ---------------------------------------------------------------- the parser's process


@pytest.fixture
def parser(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Makes a parser that runs another program."""
    with parts.code_process.CodeParser() as parser:

        def make(program: str) -> Any:
            monkeypatch.setattr(parts.code_process, "PROGRAM", f"import json, os, sys\n{program}")
            return parser

        yield make


ANSWER = "for line in sys.stdin: print(json.dumps({'value': %s}), flush=True)"


def test_the_parser_sees_nothing_of_its_surroundings(parser: Callable[[str], Any]) -> None:
    asked = parser(ANSWER % "[[*os.environ], os.getcwd(), sys.flags.isolated]")
    assert asked.ask({}, 60) in ([[], "/", 1], [["LC_CTYPE"], "/", 1])


def test_a_parser_that_takes_too_long_is_stopped(parts: Any, parser: Callable[[str], Any]) -> None:
    asked = parser(f"import time; time.sleep(10)\n{ANSWER % 1}")
    with pytest.raises(parts.code_process.ParserEnded):
        asked.ask({}, 0.1)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("", id="it ends over the request"),
        pytest.param("sys.stdin.readline(); print('{', end='')", id="it ends over the answer"),
        pytest.param("sys.stdin.readline(); print('x' * 1000, flush=True)", id="its answer is too long"),
    ],
)
def test_a_parser_without_an_answer_is_started_anew(
    parts: Any, parser: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(parts.code_process, "MAX_ANSWER", 100)
    with pytest.raises(parts.code_process.ParserEnded):
        parser(program).ask({"text": "x" * 1_000_000}, 60)
    assert parser(ANSWER % 2).ask({}, 60) == 2


def test_after_an_answer_nothing_waits_to_end_the_parser(parser: Callable[[str], Any]) -> None:
    parser(ANSWER % 1).ask({}, 60)
    waiting = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(each.finished.is_set() for each in waiting)


def test_no_parser_is_left_behind(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.code_process, "PROGRAM", f"import json, os, sys\n{ANSWER % 'os.getpid()'}")
    with parts.code_process.CodeParser() as parser:
        number = parser.ask({}, 60)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_the_parser_bounds_its_memory_and_leaves_no_image_of_it(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", bounds.__setitem__)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=()))
    parts.code_parser.main()
    assert bounds == {resource.RLIMIT_AS: (1 << 30, 1 << 30), resource.RLIMIT_CORE: (0, 0)}


@pytest.mark.parametrize("do", ["definitions", "references", "matches"])
def test_the_parser_answers_no_more_than_the_limit(parts: Any, monkeypatch: pytest.MonkeyPatch, do: str) -> None:
    symbol = parts.code_definitions.Definition("a", "function", "", 1, 1, "", 0, 0, 0)
    place = parts.code_definitions.NamePlace("a", "use", 1, 1, "", "")
    found = {"definitions": symbol, "references": place, "matches": {}}[do]
    monkeypatch.setattr(parts.code_parser, do, lambda *_: [found] * 5)
    assert len(parts.code_parser.answer_one(do, "python", "a.py", "", 2, names=[], pattern="a")) == 2


# ---------------------------------------------------------------- the tools of the pack code


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({"pattern": " "}, "pattern must not be empty", id="a blank pattern"),
        pytest.param({"limit": 0}, "limit must be 1 to 1,000, got 0", id="no files"),
        pytest.param({"limit": 1001}, "limit must be 1 to 1,000, got 1001", id="too many files"),
        pytest.param({"replacement": "x" * 2001}, "2,001 characters, more than 2,000", id="a huge replacement"),
        pytest.param({"replacement": "\0"}, "without NUL", id="a replacement with a NUL"),
    ],
)
def test_a_rewrite_with_wrong_arguments_is_refused(parts: Any, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parts.code_tools.rewrite(**{"pattern": "a", "replacement": "b", "language": "py"} | given)


@pytest.mark.parametrize("name", [[1], "a" * 201, "a b"], ids=["a number", "too long", "two words"])
def test_what_is_not_a_name_is_not_looked_for(parts: Any, name: Any) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        parts.code_tools.definitions(name=name)


def rewritten(parts: Any, monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """Let these files be found, with the text 'old', for 'new' to be written."""
    change = {"text": "new", "count": 1, "diff": ""}
    answers = [(parts.code_files.SourceFile(path, "python", "old"), change) for path in paths]
    monkeypatch.setattr(parts.code_tools, "_answers", lambda *_, **__: iter(answers))


def rewrite(parts: Any) -> Any:
    return parts.code_tools.rewrite(pattern="old", replacement="new", language="py", dry_run=False)


def test_a_rewrite_of_more_text_than_the_memory_is_for_writes_nothing(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(parts, monkeypatch, "a.py", "b.py")
    monkeypatch.setattr(parts.code_tools, "MAX_REWRITTEN_BYTES", 10)
    with testing.use() as host, pytest.raises(ValueError, match="more than 1 files would change"):
        rewrite(parts)
    assert host.called == []


@pytest.mark.parametrize("text", ["other", "old and more"], ids=["written", "appended"])
def test_a_file_that_another_has_changed_meanwhile_is_not_rewritten(
    parts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    rewritten(parts, monkeypatch, "a.py")
    (tmp_path / "a.py").write_text(text)
    with (
        testing.use(files=tmp_path, tools={"file.write": None}) as host,
        pytest.raises(RuntimeError, match=r"'a.py' was changed meanwhile; 0 of 1 files were written before it"),
    ):
        rewrite(parts)
    assert host.called == []


def test_a_rewrite_that_fails_says_how_many_files_were_written(
    parts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rewritten(parts, monkeypatch, "a.py", "b.py")

    def write(path: str, content: str) -> None:
        if path == "b.py":
            raise PermissionError("it is locked")

    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("old")
    with (
        testing.use(files=tmp_path, tools={"file.write": write}),
        pytest.raises(RuntimeError, match="PermissionError: it is locked; 1 of 2 files were written before it"),
    ):
        rewrite(parts)


def test_a_file_with_more_than_the_limit_ends_the_search(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"line": 1, "end_line": 1, "column": 1, "text": "", "captures": {}}
    files = [(SimpleNamespace(path=path), [found] * 3) for path in ("a.py", "b.py")]
    monkeypatch.setattr(parts.code_tools, "_answers", lambda *_, **__: iter(files))
    assert [each["path"] for each in parts.code_tools.search(pattern="a", language="py", limit=2)] == ["a.py", "a.py"]


class SlowParser:
    """Notes how long it may take."""

    given: list[float]

    def __enter__(self) -> SlowParser:
        self.given = []
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, request: dict[str, Any], seconds: float) -> list[Any]:
        self.given.append(seconds)
        return []


@pytest.fixture
def asked(parts: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[float]]:
    """Searches these files, and returns how long the parser might take each time."""

    def search(*names: str, seconds: float = 60) -> list[float]:
        parser = SlowParser()
        files = (parts.code_files.SourceFile(name, "python", "") for name in names)
        found = nullcontext(parts.code_files.CodeSources(files, single=False))
        monkeypatch.setattr(parts.code_tools, "CodeParser", lambda: parser)
        monkeypatch.setattr(parts.code_tools, "sources", lambda *_: found)
        with testing.use(config=parts.code_tools.Config(search_seconds=seconds)):
            parts.code_tools.search(pattern="a", language="py")
        return parser.given

    return search


def test_a_pattern_is_checked_even_where_there_are_no_files(asked: Callable[..., list[float]]) -> None:
    assert len(asked()) == 1


def test_the_parser_has_for_a_file_the_time_that_is_left_but_not_all(asked: Callable[..., list[float]]) -> None:
    assert asked("a.py")[-1] == 5
    assert asked("a.py", seconds=3)[-1] <= 3


def test_a_call_whose_time_is_over_says_where(asked: Callable[..., list[float]]) -> None:
    with pytest.raises(TimeoutError, match=r"not done after 0 s \(tools\.code\.search_seconds\), at 'a.py'"):
        asked("a.py", seconds=0)


def test_a_source_is_read_only_so_far_that_it_is_seen_to_be_too_large(parts: Any, tmp_path: Path) -> None:
    with (tmp_path / "a.py").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with (
        testing.use(config=parts.code_tools.Config(max_bytes=100), files=tmp_path),
        pytest.raises(ValueError, match=r"'a.py' cannot be parsed: it is not UTF-8 text of at most 100 bytes"),
    ):
        parts.code_tools.symbols(path="a.py")
