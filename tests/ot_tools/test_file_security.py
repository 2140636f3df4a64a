"""Edits, diffs and rules that try to leave the allowed directories, to harm a file, or to take for ever."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repositories import context

from ot.execution.tool_context import ToolContext, TooMuchHere, WorkAllowance, use
from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot_tools import _ignore_rules, _patched_files, _program_files, _tree_overview, file
from ot_tools._text_changes import TextFile

SECRET = "the secret words"


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    """The allowed directory, beside a file that is not allowed, with a secret and a hidden file inside."""
    directory, outside = tmp_path / "root", tmp_path / "outside"
    for made in (directory / ".onetool", directory / ".git" / "hooks", directory / "sub", outside):
        made.mkdir(parents=True)
    (outside / "private.txt").write_text(f"{SECRET}\n")
    (directory / ".onetool" / "secrets.yaml").write_text(f"{SECRET}\n")
    (directory / ".git" / "config").write_text(f"{SECRET}\n")
    (directory / "keys.txt").write_text(f"{SECRET}\n")
    (directory / "sub" / "inside.txt").write_text(f"{SECRET}\n")
    (directory / "a.txt").write_text("one\ntwo\n")
    (directory / "out.txt").symlink_to(outside / "private.txt")
    (directory / "out").symlink_to(outside)
    (directory / "link.txt").symlink_to("sub/inside.txt")
    os.link(directory / "keys.txt", directory / "same.txt")
    guard = PathGuard((directory,), hidden=(directory / "keys.txt",))
    with use(ToolContext(guard=guard, cwd=directory)):
        yield directory


def state(root: Path) -> dict[Path, bytes]:
    """Return every file of the test."""
    return {path: path.read_bytes() for path in sorted(root.parent.rglob("*")) if path.is_file()}


PATHS = [
    pytest.param("../outside/private.txt", id="by dots"),
    pytest.param("sub/../../outside/private.txt", id="by dots inside"),
    pytest.param("/etc/hostname", id="by an absolute path"),
    pytest.param("~/.profile", id="in the home directory"),
    pytest.param("out.txt", id="by a link to a file outside"),
    pytest.param("out/private.txt", id="by a link to a directory outside"),
    pytest.param("link.txt", id="by a link to a file inside"),
    pytest.param(".git/config", id="settings of git"),
    pytest.param(".GIT/config", id="settings of git in capitals"),
    pytest.param(".onetool/secrets.yaml", id="secrets"),
    pytest.param("keys.txt", id="a hidden file"),
    pytest.param("same.txt", id="another name of a hidden file"),
    pytest.param("a.txt\0", id="a NUL"),
]


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry", "for good"])
@pytest.mark.parametrize("path", PATHS)
def test_no_edit_reads_or_writes_what_it_must_not(root: Path, path: str, dry_run: bool) -> None:
    before = state(root)
    with pytest.raises((OSError, ValueError)) as refused:
        file.edit(path=path, old="secret", new="known", dry_run=dry_run)
    assert SECRET not in str(refused.value)
    assert state(root) == before


@pytest.mark.parametrize("dry_run", [True, False], ids=["dry", "for good"])
@pytest.mark.parametrize("path", PATHS)
def test_no_diff_reads_or_writes_what_it_must_not(root: Path, path: str, dry_run: bool) -> None:
    before = state(root)
    for diff in (
        f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-guess\n+known\n",
        f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{SECRET}\n+known\n",
    ):
        with pytest.raises((OSError, ValueError)) as refused:
            file.patch(diff=diff, dry_run=dry_run)
        assert f"has '{SECRET}'" not in str(refused.value)
    assert state(root) == before


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../outside/new.txt", id="outside"),
        pytest.param("out/new.txt", id="through a link"),
        pytest.param(".git/hooks/pre-commit", id="a hook"),
        pytest.param(".onetool/tools/pack.py", id="a pack"),
        pytest.param(".vscode/tasks.json", id="a task of an editor"),
        pytest.param("node_modules/x/index.js", id="a package"),
        pytest.param("sitecustomize.py", id="what every Python runs"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False], ids=["dry", "for good"])
def test_no_diff_makes_a_file_where_none_may_be(root: Path, path: str, dry_run: bool) -> None:
    before = state(root)
    for new in (f"b/{path}", path):
        with pytest.raises((PermissionError, ValueError)):
            file.patch(diff=f"--- /dev/null\n+++ {new}\n@@ -0,0 +1 @@\n+run me\n", dry_run=dry_run)
    with pytest.raises((PermissionError, ValueError)):
        file.patch(diff=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+run me\n", path="sub/..", dry_run=dry_run)
    assert state(root) == before


def test_a_link_that_takes_the_place_of_a_file_meanwhile_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (root.parent / "outside" / "private.txt").read_text()
    swap_after_reading(monkeypatch, lambda: swapped(root / "a.txt", root.parent / "outside" / "private.txt"))
    for call in (
        lambda: file.edit(path="a.txt", old="one", new="1"),
        lambda: file.patch(diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"),
    ):
        with pytest.raises(OSError):
            call()
        swapped(root / "a.txt", None)
    assert (root.parent / "outside" / "private.txt").read_text() == before


def test_a_directory_that_becomes_a_link_meanwhile_is_not_entered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root.parent / "outside" / "inside.txt").write_text(f"{SECRET}\n")

    def swap() -> None:
        (root / "sub").rename(root / "moved")
        (root / "sub").symlink_to(root.parent / "outside")

    swap_after_reading(monkeypatch, swap)
    with pytest.raises(PermissionError, match="outside the allowed"):
        file.edit(path="sub/inside.txt", old="secret", new="known")
    assert (root.parent / "outside" / "inside.txt").read_text() == f"{SECRET}\n"


@pytest.mark.parametrize("text", ["one more\n", "one\ntwo\nand more\n"], ids=["written", "appended"])
def test_what_another_has_written_meanwhile_is_not_lost(root: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    swap_after_reading(monkeypatch, lambda: (root / "a.txt").write_text(text))
    with pytest.raises(FileExistsError, match="changed meanwhile"):
        file.edit(path="a.txt", old="one", new="1")
    assert (root / "a.txt").read_text() == text


def test_what_another_has_deleted_meanwhile_does_not_come_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap_after_reading(monkeypatch, (root / "a.txt").unlink)
    with pytest.raises(FileExistsError, match="changed meanwhile"):
        file.edit(path="a.txt", old="one", new="1")
    assert not (root / "a.txt").exists()


def test_a_new_file_that_another_has_made_meanwhile_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap_after_reading(monkeypatch, lambda: (root / "new.txt").write_text("theirs"))
    new, old = (
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+ours\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n",
    )
    with pytest.raises(FileExistsError, match="changed meanwhile"):
        file.patch(diff=new + old)
    assert ((root / "new.txt").read_text(), (root / "a.txt").read_text()) == ("theirs", "one\ntwo\n")


def swapped(path: Path, target: Path | None) -> None:
    path.unlink()
    if target:
        path.symlink_to(target)
    else:
        path.write_text("one\ntwo\n")


def swap_after_reading(monkeypatch: pytest.MonkeyPatch, swap: Callable[[], object]) -> None:
    """Let *swap* happen right after a file was read to be changed."""
    read = TextFile.read

    def read_and_swap(*args: Any) -> TextFile:
        found = read(*args)
        swap()
        return found

    for module in (file, _patched_files):
        monkeypatch.setattr(module.TextFile, "read", read_and_swap)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_when_one_file_cannot_be_written_the_others_are_as_before(
    root: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    before = state(root)
    replace = GuardedDirectory.replace_file

    def full(self: GuardedDirectory, name: str) -> Any:
        if name == "last.txt":
            raise error("no space left")
        return replace(self, name)

    monkeypatch.setattr(GuardedDirectory, "replace_file", full)
    with pytest.raises(error, match="no space left"):
        file.patch(
            diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n"
            "--- /dev/null\n+++ b/last.txt\n@@ -0,0 +1 @@\n+x\n"
        )
    assert state(root) == before


# ---------------------------------------------------------------- size and time


def test_an_edit_that_would_fill_the_memory_is_refused_before_it_is_made(root: Path) -> None:
    (root / "many.txt").write_text("a b " * 5000)
    with pytest.raises(ValueError, match="more than 10,485,760"):
        file.edit(path="many.txt", old="a", new="x" * 10_000_000, replace_all=True)
    (root / "many.txt").write_text("a " * 20_000)
    with pytest.raises(ValueError, match="more than 10,000 times"):
        file.edit(path="many.txt", old=" ", new="", replace_all=True)


@pytest.mark.parametrize(
    "diff",
    [
        pytest.param("--- a/a.txt\n+++ b/a.txt\n@@ -1,999999999 +1,999999999 @@\n-none\n+1\n", id="a huge count"),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n@@ -9999999999999999999 +1 @@\n-one\n+1\n", id="a huge number"),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n" * 50_000, id="heads without end"),
        pytest.param("@@ -1 +1 @@\n" * 50_000, id="hunks of nothing"),
        pytest.param("diff --git " + "a/x b/" * 100_000 + "\n", id="a name without end"),
        pytest.param("Binary files " + "a and " * 100_000, id="a line that others take long for"),
    ],
)
def test_a_hostile_diff_is_refused_at_once(root: Path, diff: str) -> None:
    before = state(root)
    with pytest.raises((OSError, ValueError)):
        file.patch(diff=diff)
    assert state(root) == before


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        pytest.param(
            "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in range(201)),
            "more than 200 files",
            id="files",
        ),
        pytest.param("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n" * 2, "names 'x' twice", id="names"),
        pytest.param("x" * 10_001, "10,001 characters, more than 10,000", id="characters"),
        pytest.param(
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+" + "ä" * 9000, "would have 18,001 bytes", id="bytes to write"
        ),
    ],
)
def test_a_diff_is_refused_for_too_many(root: Path, diff: str, why: str) -> None:
    before = state(root)
    with use(context(root, max_bytes=10_000 if "files" not in why else 100_000)), pytest.raises(ValueError, match=why):
        file.patch(diff=diff)
    assert state(root) == before


def test_a_tree_of_more_than_can_be_shown_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tree_overview, "MAX_SHOWN", 1)
    with pytest.raises(ValueError, match="more than 1 entries: give a smaller depth="):
        file.tree()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("#\n" * 1000, id="lines"),
        pytest.param("#" * (256 << 10) + "\n", id="bytes"),
        pytest.param("**/" * 200, id="characters of a line"),
    ],
)
def test_rules_are_read_only_so_many(root: Path, before: str) -> None:
    (root / ".gitignore").write_text(f"b.txt\n{before}a.txt\n")
    (root / "b.txt").write_text("b")
    assert file.glob(pattern="[ab].txt") == ["a.txt"]


def test_a_hunk_that_fits_nearly_everywhere_ends_at_the_deadline(root: Path) -> None:
    (root / "same.txt").write_text("x\n" * 400_000)
    body = " x\n" * 100_000
    with use(context(root, search_seconds=0.05)), pytest.raises(TimeoutError):
        file.patch(diff=f"--- a/same.txt\n+++ b/same.txt\n@@ -399999,2 +1,2 @@\n{body}-y\n+z\n")


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param("*a" * 100 + "b\n", id="many stars"),
        pytest.param("\n".join(f"/*a{n}*b/**/c{n}*" for n in range(20_000)), id="many rules"),
        pytest.param("!\n\\\n[\n[z-a]\n[[:alpha:]]\n/\n\xff\n[a--b]\n", id="malformed patterns"),
        pytest.param("x" * 1_000_000, id="a long rule"),
        pytest.param("\n".join("?" * (400 + n) for n in range(40)), id="more than RE2 takes at once"),
    ],
)
def test_hostile_rules_are_quick_and_hide_nothing_else(root: Path, rules: str) -> None:
    (root / ".gitignore").write_text(rules)
    (root / ("a" * 200)).write_text("x")
    assert "a.txt" in file.glob(pattern="*")
    assert "a" * 200 in file.glob(pattern="*")


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_rules_that_are_not_a_file_count_for_nothing(root: Path, kind: str) -> None:
    (root.parent / "outside" / "private.txt").write_text("*\n")
    if kind == "link":
        (root / ".gitignore").symlink_to(root.parent / "outside" / "private.txt")
    elif kind == "directory":
        (root / ".gitignore").mkdir()
    else:
        os.mkfifo(root / ".gitignore")
    assert "a.txt" in file.glob(pattern="*")


def test_no_rule_and_no_tree_shows_a_secret(root: Path) -> None:
    (root / ".gitignore").write_text("!secrets.yaml\n!.onetool\n!keys.txt\n")
    told = str([file.tree(hidden=True, ignored=True, depth=9), file.glob(pattern=".onetool/*"), file.list(hidden=True)])
    assert "secrets.yaml" not in told
    assert "keys.txt" not in told
    assert file.tree(depth=9)["files"] == 3


# ---------------------------------------------------------------- what is not for the server's process


def little(root: Path, most: float = 2_000) -> ToolContext:
    return ToolContext(guard=PathGuard((root,)), cwd=root, allowance=WorkAllowance(most))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: file.list(path="many"), id="list"),
        pytest.param(lambda: file.glob(pattern="**/x*"), id="glob"),
        pytest.param(file.tree, id="tree"),
        pytest.param(lambda: file.search(pattern="x"), id="search"),
        pytest.param(lambda: _program_files.scan(path="many"), id="scan"),
    ],
)
def test_a_large_directory_is_too_much_for_the_servers_process(root: Path, call: Callable[[], object]) -> None:
    (root / "many").mkdir()
    for number in range(500):
        (root / "many" / str(number)).touch()
    with use(little(root)), pytest.raises(TooMuchHere):
        call()
    with use(context(root)):
        call()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: file.copy(source="many", target="other"), id="copy"),
        pytest.param(lambda: file.move(source="many", target="other"), id="move"),
        pytest.param(lambda: file.delete(path="many", recursive=True), id="delete"),
        pytest.param(lambda: file.edit(path="many/long.txt", old="4321\n", new="x"), id="edit"),
        pytest.param(
            lambda: file.patch(diff="--- a/many/long.txt\n+++ b/many/long.txt\n@@ -1 +1 @@\n-0\n+x\n"), id="patch"
        ),
        pytest.param(
            lambda: file.patch(diff=f"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,3000 @@\n{'+x\n' * 3000}"), id="diff"
        ),
    ],
)
def test_a_large_change_is_too_much_for_the_servers_process_and_changes_nothing(
    root: Path, change: Callable[[], object]
) -> None:
    (root / "many").mkdir()
    for number in range(50):
        (root / "many" / str(number)).touch()
    (root / "many" / "long.txt").write_text("".join(f"{number}\n" for number in range(5000)))
    before = state(root)
    with use(little(root)), pytest.raises(TooMuchHere):
        change()
    assert state(root) == before
    with use(context(root)):
        change()
    assert state(root) != before


def test_small_trees_and_texts_are_not_too_much(root: Path) -> None:
    with use(little(root)):
        file.edit(path="a.txt", old="one", new="1")
        file.patch(diff="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n")
        file.move(source="a.txt", target="b.txt")
        file.copy(source="b.txt", target="a.txt")
        file.delete(path="b.txt")
    with use(little(root)):
        assert "a.txt" in file.glob(pattern="*")
        assert file.search(pattern="nowhere to be found") == []
        assert file.tree()["files"]


@pytest.mark.parametrize(
    ("rules", "pattern"),
    [
        pytest.param(("*a" * 100 + "b\n") * 18, "x", id="long rules"),
        pytest.param("\n".join(f"*.a{n}" for n in range(900)), "x", id="many rules"),
        pytest.param("", r"(?:\pL|\pN){300}", id="an expression that takes long to compile"),
    ],
)
def test_what_takes_long_to_compile_is_too_much(root: Path, rules: str, pattern: str) -> None:
    (root / ".gitignore").write_text(rules)
    for number in range(30):
        (root / ("a" * 200 + str(number))).touch()
    with use(little(root)), pytest.raises(TooMuchHere):
        file.search(pattern=pattern)


def test_a_large_text_is_too_much(root: Path) -> None:
    (root / "large.txt").write_text("x\n" * 200_000)
    with use(little(root)), pytest.raises(TooMuchHere):
        file.search(pattern="y", path="large.txt")


def test_rules_have_a_budget_of_characters_and_comments_do_not_count(root: Path) -> None:
    long = "".join(f"{n:0100}\n" for n in range(200))
    (root / ".gitignore").write_text(f"b.txt\n{long}a.txt\n")
    (root / "b.txt").write_text("b")
    assert file.glob(pattern="[ab].txt") == ["a.txt"]
    (root / ".gitignore").write_text(f"# {long.replace(chr(10), chr(10) + '# ')}\na.txt\n")
    assert file.glob(pattern="[ab].txt") == ["b.txt"]


def test_rules_are_compiled_once_for_all_who_have_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[list[str]] = []
    compile_part = _ignore_rules._spec
    monkeypatch.setattr(_ignore_rules, "_spec", lambda lines: compiled.append(lines) or compile_part(lines))
    (root / ".gitignore").write_text("only-here-1\na.txt\n")
    for _ in range(3):
        assert "a.txt" not in file.glob(pattern="*")
    assert compiled == [["only-here-1", "a.txt"]]
    (root / ".gitignore").write_text("only-here-2\n")
    assert "a.txt" in file.glob(pattern="*")


def test_a_directory_is_read_once_for_all_its_pages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "many").mkdir()
    (root / "many" / ".onetool").mkdir()
    for number in range(25):
        (root / "many" / f"{number:02}").touch()
    (root / "many" / "link").symlink_to("00")
    os.utime(root / "many", (1, 1))
    reads: list[int] = []
    scandir = os.scandir
    monkeypatch.setattr(_program_files, "PAGE", 10)
    monkeypatch.setattr(_program_files, "MOST_STATUS", 10)
    monkeypatch.setattr(os, "scandir", lambda fd: reads.append(fd) or scandir(fd))

    def pages(*, names: bool) -> list[Any]:
        rows: list[Any] = []
        page: dict[str, Any] = {"more": True, "after": ""}
        while page["more"]:
            page = _program_files.scan(path="many", after=page["after"], names=names)
            rows += json.loads(page["data"])
        return rows

    assert pages(names=True) == [".onetool", *(f"{number:02}" for number in range(25)), "link"]
    assert len(reads) == 1
    rows = pages(names=False)
    assert len(reads) == 1
    assert rows[:2] == [[".onetool", stat.S_IFDIR, None], ["00", stat.S_IFREG, None]]
    assert rows[-1][:2] == ["link", stat.S_IFLNK]
    assert stat.S_ISREG(rows[-1][2])
    (root / "many" / "new").touch()
    assert "new" in pages(names=True)


def test_a_directory_of_more_names_than_are_listed_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program_files, "MAX_NAMES", 2)
    with pytest.raises(ValueError, match=r"holds more than 2 entries: use file\.glob"):
        _program_files.scan(path=".")
