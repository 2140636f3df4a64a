"""The bundled pack ``file``."""

from __future__ import annotations

import doctest
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ot.execution.tool_context import ToolContext, use
from ot.files import path_guard
from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot.registry.tool_loader import read_pack_file
from ot_tools import _tree_changes, file
from ot_tools._glob_pattern import GlobPattern
from ot_tools._text_search import compile_pattern, find_lines
from ot_tools._tree_walk import WalkDeadline
from pace import effort

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "packs" / "file.md"


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    """The allowed directory, with the files of the reference page."""
    directory = tmp_path / "root"
    (directory / "src" / "lib").mkdir(parents=True)
    (directory / "notes.txt").write_text("buy milk\ncall Ada\nTODO: sleep\n")
    (directory / "src" / "app.py").write_text("def main() -> None:\n    ...\n")
    (directory / "src" / "lib" / "data.json").write_text("{}")
    when = 1767323045
    os.utime(directory / "notes.txt", (when, when))
    with use(context(directory)):
        yield directory


def context(root: Path, **settings: Any) -> ToolContext:
    return ToolContext(guard=PathGuard((root,)), cwd=root, settings=settings)


# ---------------------------------------------------------------- the pack


def test_the_pack_has_the_form_that_the_loader_reads() -> None:
    tools = read_pack_file(Path(file.__file__), pack="file", target="ot_tools.file")
    assert [tool.name for tool in tools] == file.__all__ == sorted(file.__all__)
    assert [tool.name for tool in tools if tool.destructive] == ["delete", "move"]
    for tool in tools:
        assert {"keyword"} == {parameter.kind for parameter in tool.parameters}
        assert all(parameter.annotation for parameter in tool.parameters)
        for heading in ("Args:", "Returns:", "Example:"):
            assert heading in tool.doc
        for parameter in tool.parameters:
            assert f"    {parameter.name}: " in tool.doc


def test_the_reference_page_tells_the_truth() -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    page = doctest.DocTestParser().get_doctest(PAGE.read_text(), {"file": file}, "file.md", str(PAGE), 0)
    assert len(page.examples) >= 10
    assert runner.run(page).failed == 0


@pytest.mark.parametrize("name", file.__all__)
def test_the_reference_page_shows_every_tool_with_its_own_signature(name: str) -> None:
    shown = re.search(rf"^`file\.{name}\((.*)\) -> \w+`$", PAGE.read_text(), re.MULTILINE)
    parameters = inspect.signature(getattr(file, name)).parameters.values()
    given = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    assert shown
    assert given == shown[1].replace('"', "'")


def test_the_reference_page_shows_the_defaults_of_all_settings() -> None:
    block = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    assert file.Config().model_dump() == yaml.safe_load(block[1])["tools"]["file"]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_byte": 1},
        {"max_bytes": "1"},
        {"max_bytes": 0},
        {"search_seconds": 0},
        {"search_seconds": 3601},
        {"search_seconds": float("nan")},
    ],
    ids=["an unknown one", "a text", "no bytes", "no time", "more than an hour", "no number"],
)
def test_settings_that_are_wrong_are_refused(root: Path, settings: dict[str, Any]) -> None:
    with use(context(root, **settings)), pytest.raises(ValidationError):
        file.read(path="notes.txt")


# ---------------------------------------------------------------- read


def test_a_file_is_read_whole_by_default_so_that_it_can_be_written_back(root: Path) -> None:
    text = "".join(f"line {number}\r\n" for number in range(10_000))
    (root / "long").write_bytes(text.encode())
    assert text == file.read(path="long")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="ab\n\r\u2028ü\x0b", max_size=60), limit=st.integers(1, 7))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_the_pages_of_a_file_are_its_text(root: Path, text: str, limit: int, encoding: str) -> None:
    (root / "paged").write_bytes(text.encode(encoding))
    pages = (file.read(path="paged", offset=1 + n * limit, limit=limit, encoding=encoding) for n in itertools.count())
    taken = list(itertools.takewhile(bool, pages))
    assert text == "".join(taken)
    assert all(page.count("\n") <= limit for page in taken)


def test_a_page_deep_in_a_large_file_is_read_without_its_rest(root: Path) -> None:
    with (root / "large").open("wb") as large:
        for number in range(300):
            large.write(b"".join(b"%09d\n" % (number * 10_000 + line) for line in range(10_000)))
    with use(context(root, max_bytes=1000)):
        assert file.read(path="large", offset=2_999_999, limit=5) == "002999998\n002999999\n"
        assert file.read(path="large", offset=3_000_001, limit=5) == ""


def test_a_text_that_is_too_large_is_refused_with_the_way_to_page(root: Path) -> None:
    with use(context(root, max_bytes=10)):
        for limit in (None, 2):
            with pytest.raises(ValueError, match=r"'notes.txt' holds more than 10 bytes .*offset= and limit="):
                file.read(path="notes.txt", limit=limit)
        assert file.read(path="notes.txt", limit=1) == "buy milk\n"
        with pytest.raises(ValueError, match="holds more than 10 bytes"):
            file.read(path="notes.txt", limit=1, encoding="utf-16")


def test_a_line_of_many_gigabytes_is_refused_without_being_read(root: Path) -> None:
    with (root / "sparse").open("wb") as sparse:
        sparse.write(b"x" * 10_000)
        sparse.truncate(1 << 40)
    with pytest.raises(ValueError, match="more than 10,485,760 bytes"):
        file.read(path="sparse", limit=1)
    for limit in (None, 1 << 60):
        with pytest.raises(ValueError, match="more than 10,485,760 bytes"):
            file.read(path="sparse", limit=limit, encoding=None)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image, 108 bytes"),
        (b"%PDF-1.7\n%%%", "a PDF document, 112 bytes"),
        (b"PK\x03\x04\x05\x06", "a ZIP archive or office document, 106 bytes"),
        (b"\xff\xd8\xff\xe0", "a JPEG image, 104 bytes"),
        (b"GIF89a", "a GIF image, 106 bytes"),
        (b"\x1f\x8b\x08", "gzip data, 103 bytes"),
        (b"\x28\xb5\x2f\xfd", "zstd data, 104 bytes"),
        (b"\x7fELF", "an ELF program, 104 bytes"),
        (b"SQLite format 3\0", "an SQLite database, 116 bytes"),
        (b"a\0b", "binary data, 103 bytes"),
        ("\ufeffa".encode("utf-16-be"), "UTF-16 text (give encoding='utf-16'), 104 bytes"),
        ("\ufeffa".encode("utf-16-le"), "UTF-16 text (give encoding='utf-16'), 104 bytes"),
    ],
)
def test_what_is_not_text_is_refused_with_its_kind_and_size(root: Path, start: bytes, kind: str) -> None:
    (root / "odd").write_bytes(start + b"x" * 100)
    with pytest.raises(ValueError, match=re.escape(f"'odd' is {kind}, not text")):
        file.read(path="odd")


def test_bytes_that_the_encoding_does_not_know_are_refused_with_their_line(root: Path) -> None:
    (root / "latin").write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(ValueError, match=r"'latin' is not utf-8 text: line 3 .*'latin-1' reads any bytes"):
        file.read(path="latin", offset=2)
    assert file.read(path="latin", offset=3, encoding="latin-1") == "café\n"
    assert file.read(path="latin", limit=1) == "one\n"


@pytest.mark.parametrize(
    "encoding",
    ["klingon", "zlib", "rot13", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "", "a\0"],
)
def test_only_encodings_of_text_are_taken(encoding: str) -> None:
    with pytest.raises(ValueError, match="text encoding"):
        file.read(path="notes.txt", encoding=encoding)


@pytest.mark.parametrize(("name", "value"), [("offset", 0), ("offset", -1), ("limit", 0), ("limit", -5)])
def test_numbers_below_one_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 1, got {value}"):
        file.read(path="notes.txt", **{name: value})


@pytest.mark.parametrize(
    ("call", "why"),
    [
        pytest.param(
            lambda: file.edit(path="notes.txt", old="milk", new="x", count=0), "count must be >= 1", id="edits"
        ),
        pytest.param(lambda: file.tree(depth=0), "depth must be 1 to 64, got 0", id="no levels of a tree"),
        pytest.param(lambda: file.tree(depth=65), "depth must be 1 to 64, got 65", id="levels of a tree"),
        pytest.param(lambda: file.list(depth=0), "depth must be 1 to 64, got 0", id="no levels of a listing"),
        pytest.param(lambda: file.list(depth=65), "depth must be 1 to 64, got 65", id="levels of a listing"),
        pytest.param(lambda: file.glob(pattern="*", limit=0), "limit must be >= 1, got 0", id="no paths"),
        pytest.param(lambda: file.search(pattern="x", limit=0), "limit must be >= 1, got 0", id="no matches"),
        pytest.param(
            lambda: file.search(pattern="x", context=-1), "context must be 0 to 20, got -1", id="less context"
        ),
        pytest.param(lambda: file.search(pattern="x", context=21), "context must be 0 to 20, got 21", id="context"),
    ],
)
def test_numbers_out_of_their_bounds_are_refused(call: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()


@pytest.mark.parametrize(
    "call",
    [partial(file.glob, pattern="**/*"), partial(file.search, pattern=".")],
    ids=["paths", "matches"],
)
def test_a_limit_above_the_most_means_all_and_never_a_part(call: Callable[..., Any], monkeypatch: Any) -> None:
    everything = call(limit=1_000_000)
    assert len(everything) > 1
    monkeypatch.setattr(file, "MAX_LIMIT", len(everything))
    assert call(limit=len(everything)) == everything
    with pytest.raises(ValueError, match=f"there are {len(everything)} or more: ask for less"):
        call(limit=len(everything) + 1)


@pytest.mark.parametrize("value", ["2", 2.0, True, None])
def test_what_is_not_a_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="offset must be an int"):
        file.read(path="notes.txt", offset=value)


# ---------------------------------------------------------------- write


def test_text_is_written_as_it_is(root: Path) -> None:
    text = "ü\r\n\u2028\ttab\n"
    assert dict(file.write(path="new", content=text)) == {"path": "new", "bytes": 12, "created": True}
    assert text.encode() == (root / "new").read_bytes()
    assert text == file.read(path="new")


def test_a_second_write_replaces_and_says_so(root: Path) -> None:
    file.write(path="new", content="one, and more")
    assert file.write(path="new", content="two")["created"] is False
    assert (root / "new").read_text() == "two"


def test_content_above_the_limit_is_refused_before_anything_is_touched(root: Path) -> None:
    with use(context(root, max_bytes=3)), pytest.raises(ValueError, match=r"has 4 bytes, more than 3 .*in parts"):
        file.write(path="new/x", content="four")
    assert not (root / "new").exists()


@pytest.mark.parametrize("content", [3, None, ["a"], {"a": 1}])
def test_what_is_neither_text_nor_bytes_is_not_written(root: Path, content: Any) -> None:
    with pytest.raises(TypeError, match=r"content must be text or bytes, not .*json\.dumps"):
        file.write(path="new", content=content)
    assert not (root / "new").exists()


def test_half_a_character_is_not_written(root: Path) -> None:
    with pytest.raises(ValueError, match="an unpaired surrogate"):
        file.write(path="notes.txt", content="\ud800")
    assert (root / "notes.txt").read_text().startswith("buy milk")


# ---------------------------------------------------------------- no way out, whichever tool


CALLS = {
    "read": lambda path: file.read(path=path),
    "write": lambda path: file.write(path=path, content="x"),
    "append": lambda path: file.append(path=path, content="x"),
    "list": lambda path: file.list(path=path, depth=3),
    "glob": lambda path: file.glob(pattern="**", path=path),
    "search": lambda path: file.search(pattern="secret", path=path),
    "exists": lambda path: file.exists(path=path),
    "info": lambda path: file.info(path=path),
}
WAYS_OUT = [
    "..",
    "../outside",
    "../outside/x",
    "/etc",
    "/proc/self/root",
    "/proc/self/cwd",
    "out",
    "out/x",
    "~",
    "/dev/zero",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_tool_leaves_the_allowed_directory(root: Path, call: str, path: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    (root / "out").symlink_to(outside)
    with pytest.raises(PermissionError, match=r"outside the allowed directories|symbolic link"):
        CALLS[call](path)
    assert [path.name for path in outside.iterdir()] == ["x"]
    assert (outside / "x").read_text() == "secret"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("", "'' is not a path: it is empty", id="nothing"),
        pytest.param("a\0", r"is not a path: it holds a NUL", id="a NUL"),
        pytest.param("\ud800", "is not a path: it holds an unpaired surrogate", id="an unpaired surrogate"),
        pytest.param("x/" * 3000, r"^'x/.* is too long for a path", id="too long"),
        pytest.param(5, "not int", id="a number"),
    ],
)
@pytest.mark.parametrize("call", [*CALLS, "tree", "copy"])
def test_no_tool_takes_what_cannot_be_a_path(call: str, path: Any, why: str) -> None:
    calls = CALLS | {
        "tree": lambda path: file.tree(path=path),
        "copy": lambda path: file.copy(source="src", target=path),
    }
    with pytest.raises((TypeError, ValueError), match=why):
        calls[call](path)


@pytest.mark.parametrize("tool", ["list", "glob", "search"])
def test_a_walk_enters_no_linked_directory(root: Path, tool: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to(".")
    found = {
        "list": lambda: [entry["path"] for entry in file.list(depth=9)],
        "glob": lambda: file.glob(pattern="**/*"),
        "search": lambda: file.search(pattern="secret"),
    }[tool]()
    assert not [path for path in found if str(path).startswith(("out/", "loop/")) or "secret" in str(path)]


@pytest.mark.parametrize("path", [".onetool/onetool.yaml", ".onetool/tools/x/x_tools.py", ".git/hooks/x", ".mcp.json"])
def test_what_would_become_code_is_not_written(root: Path, path: str) -> None:
    for append in (False, True):
        with pytest.raises(PermissionError):
            file.write(path=path, content="x", append=append)
    assert not (root / path).parent.exists() or path == ".mcp.json"


def test_secrets_are_found_by_no_tool(root: Path) -> None:
    (root / ".onetool" / "tmp").mkdir(parents=True)
    for name in ("secrets.yaml", "tmp/result-x.txt"):
        (root / ".onetool" / name).write_text("TOKEN: sesame")
    assert file.search(pattern="sesame") == []
    assert file.glob(pattern=".onetool/**") == []
    assert [entry for entry in file.list(depth=5, hidden=True) if "secrets" in entry["path"]] == []


# ---------------------------------------------------------------- list


def test_a_listing_goes_as_deep_as_asked_in_a_fixed_order() -> None:
    assert [entry["path"] for entry in file.list()] == ["notes.txt", "src"]
    assert [entry["path"] for entry in file.list(depth=2)] == ["notes.txt", "src", "src/app.py", "src/lib"]


def test_names_with_a_dot_are_listed_when_asked_for(root: Path) -> None:
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x").write_text("x")
    assert ".hidden" not in [entry["path"] for entry in file.list(depth=2)]
    assert {".hidden", ".hidden/x"} <= {entry["path"] for entry in file.list(depth=2, hidden=True)}


def test_each_kind_of_entry_has_its_type(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("notes.txt")
    kinds = {entry["path"]: (entry["type"], entry["size"]) for entry in file.list()}
    assert kinds == {"link": ("link", 0), "notes.txt": ("file", 30), "pipe": ("other", 0), "src": ("directory", 0)}


def test_a_listing_that_is_too_long_is_refused_not_cut(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_ENTRIES", 3)
    assert len(file.list()) == 2
    with pytest.raises(ValueError, match=r"more than 3 entries: list less, or use file\.glob"):
        file.list(depth=2)


def test_a_listing_that_is_too_long_is_not_walked_to_its_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "zz").mkdir()
    entered = record(monkeypatch, "child")
    monkeypatch.setattr(file, "MAX_ENTRIES", 2)
    with pytest.raises(ValueError, match="more than 2 entries"):
        file.list(depth=2)
    assert "src" in entered
    assert "zz" not in entered


def record(monkeypatch: pytest.MonkeyPatch, method: str) -> list[str]:
    """Return the names that the method is used for from now on."""
    original, names = getattr(GuardedDirectory, method), list[str]()

    def used(directory: GuardedDirectory, name: str) -> Any:
        names.append(name)
        return original(directory, name)

    monkeypatch.setattr(GuardedDirectory, method, used)
    return names


def test_a_file_cannot_be_listed() -> None:
    with pytest.raises(NotADirectoryError):
        file.list(path="notes.txt")


def test_a_directory_that_is_closed_to_the_user_is_not_empty_but_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", closed)  # root, as whom tests may run, could list it
    with pytest.raises(PermissionError, match="'src' cannot be listed: Permission denied"):
        file.list(path="src")


def test_a_directory_below_that_is_closed_to_the_user_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scandir, uses = os.scandir, itertools.count()

    def closed(fd: int) -> Any:
        if next(uses) > 0:
            raise PermissionError(13, "Permission denied")
        return scandir(fd)

    monkeypatch.setattr(os, "scandir", closed)
    assert file.glob(pattern="**") == ["notes.txt"]


@pytest.mark.parametrize("moment", ["child", "entries"])
def test_what_vanishes_during_a_walk_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    (root / "gone").mkdir()
    vanish(monkeypatch, moment, root / "gone")
    assert file.glob(pattern="**") == ["notes.txt", "src/app.py", "src/lib/data.json"]


def test_a_file_that_vanishes_during_a_search_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "gone").write_text("milk")
    vanish(monkeypatch, "open_file", root / "gone")
    assert [hit["path"] for hit in file.search(pattern="milk")] == ["notes.txt"]


def test_a_file_that_vanishes_before_its_size_is_known_has_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "gone").write_text("milk")
    with monkeypatch.context() as patch:
        vanish(patch, "status", root / "gone")
        assert file.list()[0] == {"path": "gone", "name": "gone", "type": "file", "size": 0}
    (root / "gone").write_text("milk")
    vanish(monkeypatch, "status", root / "gone")
    assert file.tree().get("entries", [])[0] == {"name": "gone", "type": "file", "size": 0, "files": 1}


def vanish(monkeypatch: pytest.MonkeyPatch, method: str, path: Path) -> None:
    """Remove *path* right before the second use of the method, when a walk has seen its name."""
    original = getattr(GuardedDirectory, method)
    uses = itertools.count()

    def used(directory: GuardedDirectory, *arguments: Any) -> Any:
        if arguments == (path.name,) or (not arguments and next(uses) == 1):
            path.rmdir() if path.is_dir() else path.unlink()
        return original(directory, *arguments)

    monkeypatch.setattr(GuardedDirectory, method, used)


# ---------------------------------------------------------------- glob


def test_paths_found_can_be_read_whichever_way_the_start_was_given(root: Path) -> None:
    for start in ("src", "src/", "./src", str(root / "src")):
        (path,) = file.glob(pattern="*.py", path=start)
        assert file.read(path=path).startswith("def main")


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*", ["notes.txt"]),
        ("*/*", ["src/app.py"]),
        ("**", ["notes.txt", "src/app.py", "src/lib/data.json"]),
        ("**/*", ["notes.txt", "src/app.py", "src/lib/data.json"]),
        ("src/**", ["src/app.py", "src/lib/data.json"]),
        ("**/lib/**/*.json", ["src/lib/data.json"]),
        ("**/**/data.*", ["src/lib/data.json"]),
        ("src/ap[op].py", ["src/app.py"]),
        ("{src,none}/{app,a{b,c}}.p?", ["src/app.py"]),
        ("./src/./app.py", ["src/app.py"]),
        ("SRC/*", []),
        ("src", []),
    ],
)
def test_patterns_mean_what_people_expect(pattern: str, paths: list[str]) -> None:
    assert paths == file.glob(pattern=pattern)


def test_git_is_entered_only_by_name(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    assert not [path for path in file.glob(pattern="**") if ".git" in path]
    assert file.glob(pattern=".git/*") == [".git/config"]
    assert file.search(pattern="core") == []


def test_links_to_files_are_found_when_they_can_be_read(root: Path) -> None:
    (root / "good").symlink_to("src/app.py")
    (root / "dangling").symlink_to("none")
    (root / "bad").symlink_to("/etc/passwd")
    (root / "directory").symlink_to("src")
    assert file.glob(pattern="*") == ["good", "notes.txt"]


def test_a_link_whose_path_is_too_long_to_be_followed_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src" / "lib" / "link").symlink_to("data.json")
    monkeypatch.setattr(path_guard, "MAX_PATH_BYTES", 8)
    assert file.glob(pattern="src/lib/*", ignored=True) == ["src/lib/data.json"]


def test_no_more_paths_than_the_limit_are_returned() -> None:
    assert file.glob(pattern="**", limit=2) == ["notes.txt", "src/app.py"]


@pytest.mark.parametrize("pattern", ["", "/etc/*", "~/*", "../*", "src/../../*", "src/", "x" * 1001, "{a,b}" * 7])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|below the directory|names a directory"):
        file.glob(pattern=pattern)


def test_a_hostile_pattern_is_quick(root: Path) -> None:
    (root / ("a" * 255)).write_text("")
    with effort() as spent:
        assert file.glob(pattern="*a" * 120 + "b") == []
        assert file.glob(pattern="**/" * 300 + "b") == []
    assert spent.loops < 2000


@given(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5), st.data())
def test_a_pattern_that_is_a_path_matches_that_path_alone(names: list[str], data: st.DataObject) -> None:
    pattern = GlobPattern("/".join(names))
    other = data.draw(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5))
    states = pattern.start()
    for name in other:
        states = pattern.step(states, name)
    assert pattern.complete(states) == (names == other)


def test_a_tree_that_is_nested_without_end_is_refused(root: Path) -> None:
    deep = root.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    with pytest.raises(ValueError, match="65 directories deep: start nearer to it"):
        file.glob(pattern="**")
    assert file.glob(pattern="**", path="/".join(["d"] * 20)) == []


# ---------------------------------------------------------------- search


def test_every_line_is_found_once_with_its_number(root: Path) -> None:
    (root / "many").write_text("foo foo\nbar\n\nfoo")
    assert [(hit["line"], hit["text"]) for hit in file.search(pattern="foo", path="many")] == [
        (1, "foo foo"),
        (4, "foo"),
    ]


@given(
    text=st.text(alphabet="ab\n\r é\u2028", max_size=60),
    pattern=st.sampled_from(["a", "^a", "b$", "^$", "a.b", "a*", r"\ba", "é", "[^a]", r"\s", "x?"]),
)
def test_lines_are_found_as_python_finds_them_line_by_line(text: str, pattern: str) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    lines = lines if lines[-1] else lines[:-1]
    expected = [(n, line) for n, line in enumerate(lines, 1) if re.search(pattern, line, re.ASCII)]
    hits = find_lines(text.encode(), compile_pattern(pattern, ignore_case=False))
    assert expected == [(hit.line, hit.text) for hit in hits]


def test_neighbours_are_cut_at_the_ends_of_the_file(root: Path) -> None:
    (root / "five").write_text("1\n2\n3\n4\n5\n")
    neighbours = [(hit.get("before"), hit.get("after")) for hit in file.search(pattern="[135]", path="five", context=2)]
    assert neighbours == [([], ["2", "3"]), (["1", "2"], ["4", "5"]), (["3", "4"], [])]


@pytest.mark.parametrize("first", ["", "x"])
def test_of_a_long_line_the_part_around_the_match_is_shown(root: Path, first: str) -> None:
    (root / "long").write_text(first + "€" * 100_000 + "needle" + "€" * 100_000)
    (hit,) = file.search(pattern="needle", path="long")
    assert "needle" in hit["text"]
    assert len(hit["text"]) == 500
    assert set(hit["text"].replace("needle", "")) == {"€"}


def test_a_match_after_bytes_that_are_no_characters_is_shown(root: Path) -> None:
    (root / "long").write_bytes(b"\x80" * 10_000 + b"needle" + b"\x80" * 10_000)
    (hit,) = file.search(pattern="needle", path="long")
    assert "needle" in hit["text"]


def test_binary_and_large_files_are_left_out_of_a_tree_but_not_silently_when_named(root: Path) -> None:
    (root / "binary").write_bytes(b"milk\0")
    (root / "large").write_bytes(b"milk" * 100)
    with use(context(root, max_bytes=100)):
        assert [hit["path"] for hit in file.search(pattern="milk")] == ["notes.txt"]
        with pytest.raises(ValueError, match="'large' has 400 bytes, more than 100 "):
            file.search(pattern="milk", path="large")
        with pytest.raises(ValueError, match="'binary' is binary data"):
            file.search(pattern="milk", path="binary")


def test_a_file_that_is_not_utf8_is_searched_all_the_same(root: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9 noir\n")
    assert file.search(pattern="noir")[0]["text"] == "caf\ufffd noir"


def test_an_empty_file_holds_nothing(root: Path) -> None:
    (root / "empty").write_text("")
    assert file.search(pattern=".*", path="empty") == []


def test_the_limit_ends_a_search(root: Path) -> None:
    (root / "many").write_text("x\n" * 1000)
    assert len(file.search(pattern="x", path="many", limit=200)) == 200
    assert [hit["line"] for hit in file.search(pattern="x", path="many", limit=3)] == [1, 2, 3]


def test_no_file_is_opened_after_the_last_match(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "other.txt").write_text("milk")
    opened = record(monkeypatch, "open_file")
    assert [hit["path"] for hit in file.search(pattern="milk", limit=1)] == ["notes.txt"]
    assert "other.txt" not in opened


@pytest.mark.parametrize(
    ("pattern", "why"), [("(?=a)", "look-around"), (r"(a)\1", "RE2"), ("(", "RE2"), ("a)(b", "RE2")]
)
def test_an_expression_that_re2_lacks_is_refused_with_its_reason(
    capfd: pytest.CaptureFixture[str], pattern: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        file.search(pattern=pattern)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("", "1 to 1,000 characters"), ("x" * 1001, "1 to 1,000 characters"), ("\ud800", "an unpaired surrogate")],
)
def test_text_that_is_not_an_expression_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        file.search(pattern=pattern)


def test_an_expression_that_hangs_others_is_quick(root: Path) -> None:
    (root / "trap").write_text("a" * 100_000)
    with effort() as spent:
        assert file.search(pattern="(a|a)*(a+)+b$", path="trap") == []
    assert spent.loops < 2000


@pytest.mark.parametrize("path", [".", "notes.txt"], ids=["a directory", "one file"])
def test_a_search_ends_at_its_deadline_with_advice(root: Path, path: str) -> None:
    with use(context(root, search_seconds=1e-9)), pytest.raises(TimeoutError, match=r"search_seconds.*path="):
        file.search(pattern="milk", path=path)


@pytest.mark.parametrize(
    "walk",
    [lambda: file.list(), lambda: file.tree(), lambda: file.glob(pattern="*"), lambda: file.search(pattern="none")],
    ids=["list", "tree", "glob", "search"],
)
def test_a_walk_ends_at_its_deadline(root: Path, walk: Callable[[], object]) -> None:
    with use(context(root, search_seconds=1e-9)), pytest.raises(TimeoutError, match="search_seconds"):
        walk()


def test_without_re2_plain_text_is_still_found_and_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert [hit["text"] for hit in file.search(pattern="todo:", ignore_case=True)] == ["TODO: sleep"]
    with pytest.raises(ValueError, match="needs the google-re2 package"):
        file.search(pattern="TO.O")


# ---------------------------------------------------------------- info


def test_info_follows_a_link_that_stays_inside(root: Path) -> None:
    (root / "link").symlink_to("src")
    assert file.info(path="link")["type"] == "directory"


def test_info_of_nothing_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="'none' does not exist"):
        file.info(path="none")


# ---------------------------------------------------------------- bytes, and changes of the tree


def test_bytes_are_written_and_read_as_they_are(root: Path) -> None:
    file.write(path="image.png", content=b"\x89PNG\0\xff")
    assert (root / "image.png").read_bytes() == b"\x89PNG\0\xff"
    assert file.read(path="image.png", encoding=None) == b"\x89PNG\0\xff"
    assert file.read(path="image.png", encoding=None, offset=2, limit=3) == b"PNG"


def test_more_bytes_than_allowed_are_refused_and_can_be_read_in_parts(root: Path) -> None:
    (root / "large").write_bytes(b"x" * 100)
    with use(context(root, max_bytes=50)):
        with pytest.raises(ValueError, match="limit="):
            file.read(path="large", encoding=None)
        assert len(file.read(path="large", encoding=None, offset=51, limit=50)) == 50


def test_a_directory_is_copied_with_all_that_it_holds(root: Path) -> None:
    (root / "src" / "empty").mkdir()
    assert file.copy(source="src", target="copy/of") == {"path": "copy/of", "files": 2}
    assert (root / "copy/of/lib/data.json").read_text() == "{}"
    assert (root / "copy/of/empty").is_dir()
    with pytest.raises(FileExistsError):
        file.copy(source="src", target="copy/of")


def test_a_copy_leaves_out_what_may_not_be_read(root: Path) -> None:
    guard = PathGuard((root,), hidden=(root / "src" / "app.py",))
    with use(ToolContext(guard=guard, cwd=root)):
        assert file.copy(source="src", target="copy") == {"path": "copy", "files": 1}
    assert not (root / "copy" / "app.py").exists()


def test_a_directory_with_what_may_not_be_read_is_neither_moved_nor_deleted(root: Path) -> None:
    before = sorted(root.rglob("*"))
    guard = PathGuard((root,), hidden=(root / "src" / "app.py",))
    with use(ToolContext(guard=guard, cwd=root)):
        for change in ("delete", "move"):
            with pytest.raises(PermissionError):
                TREE_CHANGES[change]()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("change", ["move", "copy"])
def test_a_directory_is_not_filled_up_unasked(root: Path, change: str) -> None:
    (root / "other").mkdir()
    with pytest.raises(FileExistsError, match="'other' exists: give overwrite=True"):
        TREE_CHANGES[change]()
    assert [*(root / "other").iterdir()] == []


def test_a_directory_is_moved_with_all_that_it_holds(root: Path) -> None:
    assert file.move(source="src", target="moved") == {"path": "moved", "files": 2}
    assert (root / "moved/lib/data.json").read_text() == "{}"
    assert not (root / "src").exists()


@pytest.mark.parametrize("target", ["src", "src/lib/deeper", "./src/lib/deeper", "to-src/deeper"])
def test_a_directory_is_neither_moved_nor_copied_into_itself(root: Path, target: str) -> None:
    (root / "to-src").symlink_to("src")
    before = sorted(root.rglob("*"))
    for change in (file.copy, file.move):
        with pytest.raises(ValueError, match="lies inside 'src'"):
            change(source="src", target=target)
    assert sorted(root.rglob("*")) == before


def test_a_directory_with_a_link_is_neither_moved_nor_copied(root: Path) -> None:
    (root / "src" / "link").symlink_to("app.py")
    for change in (file.copy, file.move):
        with pytest.raises(PermissionError, match="'link' below it is a link"):
            change(source="src", target="other")
    assert not (root / "other").exists()
    assert (root / "src" / "app.py").exists()


@pytest.mark.parametrize("made", [["pyvenv.cfg"], ["HEAD", "objects", "refs"]], ids=["environment", "repository"])
def test_a_directory_that_holds_code_by_another_name_is_neither_moved_nor_deleted(root: Path, made: list[str]) -> None:
    (root / "top" / "inner").mkdir(parents=True)
    for name in ("a.txt", *made):
        (root / "top" / "inner" / name).write_text("kept")
    before = sorted(root.rglob("*"))
    with pytest.raises(PermissionError):
        file.delete(path="top", recursive=True)
    with pytest.raises(PermissionError):
        file.move(source="top", target="other")
    assert sorted(root.rglob("*")) == before


def test_a_directory_that_is_nested_without_end_is_left_alone(root: Path) -> None:
    root.joinpath("deep", *["d"] * 70).mkdir(parents=True)
    before = sorted(root.rglob("*"))
    for change in (
        lambda: file.delete(path="deep", recursive=True),
        lambda: file.move(source="deep", target="other"),
        lambda: file.copy(source="deep", target="other"),
    ):
        with pytest.raises(ValueError, match="more than 64 directories deep"):
            change()
    assert sorted(root.rglob("*")) == before


TREE_CHANGES: dict[str, Callable[[], object]] = {
    "delete": lambda: file.delete(path="src", recursive=True),
    "move": lambda: file.move(source="src", target="other"),
    "copy": lambda: file.copy(source="src", target="other"),
}


@pytest.mark.parametrize("change", TREE_CHANGES)
def test_a_change_of_a_tree_whose_walk_takes_too_long_changes_nothing(root: Path, change: str) -> None:
    before = sorted(root.rglob("*"))
    with use(context(root, search_seconds=1e-9)), pytest.raises(TimeoutError):
        TREE_CHANGES[change]()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("change", TREE_CHANGES)
def test_a_change_of_a_tree_with_too_many_entries_changes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(_tree_changes, "MAX_ENTRIES", 2)
    before = sorted(root.rglob("*"))
    with pytest.raises(ValueError, match="more than 2 entries: take its directories one by one"):
        TREE_CHANGES[change]()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("change", TREE_CHANGES)
def test_a_change_of_a_tree_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    checks = itertools.count(1)

    def late_after_the_walk(_: WalkDeadline) -> None:
        if next(checks) > 3:  # the entries below src
            raise TimeoutError

    monkeypatch.setattr(WalkDeadline, "check", late_after_the_walk)
    with pytest.raises(TimeoutError):
        TREE_CHANGES[change]()


def test_a_directory_that_holds_something_is_deleted_only_on_demand(root: Path) -> None:
    with pytest.raises(OSError, match="not empty"):
        file.delete(path="src")
    assert (root / "src/app.py").exists()


def test_a_directory_is_not_made_where_a_file_is(root: Path) -> None:
    assert file.make_directory(path="src") == {"path": "src", "created": False}
    assert file.make_directory(path=".") == {"path": ".", "created": False}
    with pytest.raises(FileExistsError, match="something else has that name"):
        file.make_directory(path="notes.txt")


def test_a_path_that_names_a_directory_is_not_taken_for_a_file(root: Path) -> None:
    for change in (
        lambda: file.copy(source="notes.txt", target="copy/"),
        lambda: file.move(source="notes.txt", target="moved/"),
        lambda: file.edit(path="notes.txt/", old="milk", new="bread", dry_run=True),
    ):
        with pytest.raises(IsADirectoryError):
            change()
    assert sorted(path.name for path in root.iterdir()) == ["notes.txt", "src"]


def test_what_exists_is_replaced_only_on_demand(root: Path) -> None:
    for change in (file.copy, file.move):
        with pytest.raises(FileExistsError):
            change(source="notes.txt", target="src/app.py")
    assert (root / "src/app.py").read_text().startswith("def main")
    file.move(source="notes.txt", target="src/app.py", overwrite=True)
    assert (root / "src/app.py").read_text().startswith("buy milk")


def test_a_link_is_deleted_and_what_it_leads_to_stays(root: Path) -> None:
    (root / "link").symlink_to("src")
    assert file.delete(path="link", recursive=True) == {"path": "link", "type": "link", "count": 1}
    assert (root / "src/app.py").exists()


@pytest.mark.parametrize("name", [".git/hooks/x", "sub/.vscode/tasks.json", ".onetool/secrets.yaml"])
def test_a_directory_that_holds_what_must_stay_is_neither_moved_nor_deleted(root: Path, name: str) -> None:
    (root / "top" / name).parent.mkdir(parents=True)
    (root / "top" / name).write_text("kept")
    (root / "top" / "a.txt").write_text("kept")
    with pytest.raises(PermissionError):
        file.delete(path="top", recursive=True)
    with pytest.raises(PermissionError):
        file.move(source="top", target="other")
    assert (root / "top" / name).read_text() == (root / "top" / "a.txt").read_text() == "kept"


@pytest.mark.parametrize("target", [".git/config", "x/.npmrc", "/elsewhere/x", "../x"])
def test_nothing_is_moved_or_copied_to_where_nothing_is_written(root: Path, target: str) -> None:
    for change in (file.copy, file.move):
        with pytest.raises(PermissionError):
            change(source="notes.txt", target=target)
    assert (root / "notes.txt").exists()


def test_no_repository_comes_about_by_moving_its_parts(root: Path) -> None:
    for name in ("objects", "refs"):
        (root / "bare" / name).mkdir(parents=True)
    (root / "head").write_text("ref: refs/heads/main")
    with pytest.raises(PermissionError):
        file.move(source="head", target="bare/HEAD")
    with pytest.raises(PermissionError):
        file.copy(source="head", target="bare/HEAD")
    assert not (root / "bare/HEAD").exists()


def test_an_allowed_directory_itself_stays(root: Path) -> None:
    for path in (".", str(root)):
        with pytest.raises(PermissionError, match="allowed directory"):
            file.delete(path=path, recursive=True)
    assert (root / "notes.txt").exists()
