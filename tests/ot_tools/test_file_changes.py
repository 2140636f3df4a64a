"""The pack ``file``: edits, diffs, trees, and what git ignores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repositories import context, run_git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ot.execution.tool_context import use
from ot_tools import file
from ot_tools._text_changes import MAX_DIFF, MAX_LINES

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    """The allowed directory, with one file."""
    directory = tmp_path / "root"
    directory.mkdir()
    (directory / "a.txt").write_text(TEXT)
    with use(context(directory)):
        yield directory


def diff_of_git(root: Path, name: str, before: bytes, after: bytes) -> str:
    """Return what git says when the file changes so, and leave it as it was."""
    run_git(root, "init", "--quiet")
    (root / name).write_bytes(before)
    run_git(root, "add", name)
    (root / name).write_bytes(after)
    told = subprocess.run(["git", "diff"], cwd=root, capture_output=True, check=True).stdout.decode()
    (root / name).write_bytes(before)
    return told


# ---------------------------------------------------------------- edit


def test_an_edit_replaces_exactly_one_place_and_shows_it(root: Path) -> None:
    told = file.edit(path="a.txt", old="two\nthree", new="2\n3")
    assert told == {
        "path": "a.txt", "replaced": 1,
        "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,6 +1,6 @@\n one\n-two\n-three\n+2\n+3\n four\n five\n six\n",
    }  # fmt: skip
    assert (root / "a.txt").read_text() == TEXT.replace("two\nthree", "2\n3")


def test_a_dry_run_shows_the_same_and_changes_nothing(root: Path) -> None:
    dry = file.edit(path="a.txt", old="two", new="2", dry_run=True)
    assert (root / "a.txt").read_text() == TEXT
    assert dry == file.edit(path="a.txt", old="two", new="2")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        pytest.param({"old": "e\n"}, r"holds the old text 5 times, not 1 \(lines 1, 3, 5, 9", id="found more often"),
        pytest.param({"old": "e"}, r"9 times, not 1 \(lines 1, 3, 3, 5, 7 and more\)", id="found very often"),
        pytest.param({"old": "e\n", "count": 2}, "5 times, not 2", id="found at other than the count"),
        pytest.param({"old": "zwei"}, "does not hold the old text: read it first", id="not found"),
        pytest.param({"old": "two\n three"}, r"nearest is line 2, 'two'", id="found with other spaces"),
        pytest.param({"old": ""}, "old is empty", id="empty"),
        pytest.param({"old": "x"}, "the same text", id="the same as before"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(root: Path, asked: dict[str, Any], why: str) -> None:
    (root / "a.txt").write_text(TEXT.replace("ten", "line"))
    before = (root / "a.txt").read_bytes()
    with pytest.raises(ValueError, match=why):
        file.edit(path="a.txt", new="x", **asked)
    assert (root / "a.txt").read_bytes() == before


def test_a_file_that_is_not_utf8_is_not_edited_and_the_error_says_what_to_do(root: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9 noir\n")
    with pytest.raises(ValueError, match=r"'latin' is not UTF-8 text: read it with file.read\(encoding="):
        file.edit(path="latin", old="noir", new="blanc")


def test_a_binary_file_is_not_edited(root: Path) -> None:
    (root / "binary").write_bytes(b"one\0")
    with pytest.raises(ValueError, match="'binary' is binary data"):
        file.edit(path="binary", old="one", new="two")


def test_half_a_character_is_not_edited_in(root: Path) -> None:
    with pytest.raises(ValueError, match=r"'a.txt' is not changed: the new text holds an unpaired surrogate"):
        file.edit(path="a.txt", old="two", new="\ud800")
    assert (root / "a.txt").read_text() == TEXT


def test_of_a_long_line_an_error_shows_the_beginning(root: Path) -> None:
    (root / "a.txt").write_text(f"two{'x' * 1000}\n")
    with pytest.raises(ValueError, match=r"nearest is line 1, 'twox{197}':"):
        file.edit(path="a.txt", old="two\nthree", new="2")
    diff = f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-{'y' * 1000}\n+1\n"
    with pytest.raises(ValueError, match=r"diff has 'y{200}', the file has 'twox{197}' in line 1"):
        file.patch(diff=diff)


def test_line_ends_of_both_kinds_stay(root: Path) -> None:
    (root / "mixed.txt").write_bytes(b"one\r\ntwo\nthree\r\n")
    file.edit(path="mixed.txt", old="two", new="2")
    assert (root / "mixed.txt").read_bytes() == b"one\r\n2\nthree\r\n"


def test_as_many_places_as_said_or_all_are_replaced(root: Path) -> None:
    assert file.edit(path="a.txt", old="o", new="0", count=3)["replaced"] == 3
    assert file.edit(path="a.txt", old="e", new="E", replace_all=True)["replaced"] == 9
    assert "sEvEn" in (root / "a.txt").read_text()


def test_of_a_very_long_diff_the_end_is_left_out_and_what_is_left_is_not_applied(root: Path) -> None:
    before = "".join(f"one {number} {'x' * 1000}\n{'same\n' * 8}" for number in range(1000))
    (root / "long.txt").write_text(before)
    edited = file.edit(path="long.txt", old="one", new="two", replace_all=True)
    assert edited["replaced"] == 1000
    assert (root / "long.txt").read_text() == before.replace("one", "two")
    assert MAX_DIFF / 2 < len(edited["diff"]) < MAX_DIFF + 1000
    assert "the rest of the diff is left out" in edited["diff"].splitlines()[-1]
    (root / "long.txt").write_text(before)
    with pytest.raises(ValueError, match="must be like"):
        file.patch(diff=edited["diff"])
    assert (root / "long.txt").read_text() == before


def test_a_file_and_a_diff_of_more_lines_than_can_be_compared_are_refused(root: Path) -> None:
    many = "\n" * (MAX_LINES + 1)
    (root / "many.txt").write_text(many)
    with pytest.raises(ValueError, match="1,000,001 lines, more than 1,000,000"):
        file.edit(path="many.txt", old="a", new="b")
    with pytest.raises(ValueError, match="1,000,001 lines, more than 1,000,000"):
        file.patch(diff=many)


def test_line_ends_and_mode_of_a_file_stay(root: Path) -> None:
    (root / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (root / "dos.txt").chmod(0o640)
    file.edit(path="dos.txt", old="one\ntwo", new="1\n2\n3")
    assert (root / "dos.txt").read_bytes() == b"1\r\n2\r\n3\r\n"
    file.edit(path="dos.txt", old="1\r\n2", new="one\r\ntwo")
    assert (root / "dos.txt").read_bytes() == b"one\r\ntwo\r\n3\r\n"
    assert (root / "dos.txt").stat().st_mode & 0o777 == 0o640


texts = st.text(alphabet="ab\n", max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=texts, old=st.text(alphabet="ab\n", min_size=1, max_size=4), new=texts)
def test_the_diff_of_an_edit_makes_of_the_old_text_the_new_one(root: Path, before: str, old: str, new: str) -> None:
    (root / "b.txt").write_text(before)
    if old not in before or old == new:
        return
    diff = file.edit(path="b.txt", old=old, new=new, replace_all=True, dry_run=True)["diff"]
    after = before.replace(old, new)
    if after == before or not after:
        return
    file.patch(diff=diff)
    assert (root / "b.txt").read_text() == after


# ---------------------------------------------------------------- patch


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(before=st.lists(st.sampled_from("abcd"), min_size=1, max_size=30), data=st.data(), bare=st.booleans())
def test_a_diff_made_by_diff_is_applied_as_patch_would(
    root: Path, before: list[str], data: st.DataObject, bare: bool
) -> None:
    after = [line for line in before for line in data.draw(st.sampled_from([[line], [], [line, "x"], ["y"]]))]
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    new = new[:-1] if bare else new
    if old == new or not new:
        return
    (root / "old").write_text(old)
    (root / "new").write_text(new)
    labels = ("--label", "a/old", "--label", "b/old")
    diff = subprocess.run(["diff", "-u", *labels, "old", "new"], cwd=root, capture_output=True, text=True).stdout
    file.patch(diff=diff)
    assert (root / "old").read_text() == new


def test_a_diff_of_several_files_is_applied_as_a_whole_or_not_at_all(root: Path) -> None:
    (root / "b.txt").write_text("b\n")
    diff = (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
        "--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+c\n"
        "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-{}\n+B\n"
    )
    with pytest.raises(ValueError, match=r"'b.txt': the hunk at line 13 .* has 'x', the file has 'b' in line 1"):
        file.patch(diff=diff.format("x"))
    assert ((root / "a.txt").read_text(), (root / "new").exists()) == (TEXT, False)
    assert file.patch(diff=diff.format("b"), dry_run=True) == [
        {"path": "a.txt", "created": False, "added": 1, "deleted": 1},
        {"path": "new/c.txt", "created": True, "added": 1, "deleted": 0},
        {"path": "b.txt", "created": False, "added": 1, "deleted": 1},
    ]
    assert (root / "a.txt").read_text() == TEXT
    file.patch(diff=diff.format("b"))
    assert ((root / "new" / "c.txt").read_text(), (root / "b.txt").read_text()) == ("c\n", "B\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n", id="in all lines"),
        pytest.param(b"a\r\nb\r\nc", b"a\r\nB\r\nC", id="but not in the last line"),
        pytest.param(b"a\nb\n", b"a\r\nb\r\n", id="that come with the diff"),
    ],
)
def test_a_diff_of_git_with_carriage_returns_is_applied(root: Path, before: bytes, after: bytes) -> None:
    file.patch(diff=diff_of_git(root, "w.txt", before, after))
    assert (root / "w.txt").read_bytes() == after


def test_a_diff_that_takes_the_carriage_returns_away_is_not_applied_as_nothing(root: Path) -> None:
    diff = diff_of_git(root, "w.txt", b"a\r\nb\r\n", b"a\nb\n")
    with pytest.raises(ValueError, match=r"where the diff has 'a\\r', the file has 'a' in line 1"):
        file.patch(diff=diff)


def test_a_hunk_is_found_by_its_lines_when_its_numbers_are_wrong(root: Path) -> None:
    hunk = "@@ -1,99 +40,2 @@ def x\n six\n-seven\n+7\n eight\n"
    file.patch(diff=f"Here it is:\n\n--- a/a.txt\n+++ b/a.txt\n{hunk}\nThat is all.\n")
    assert (root / "a.txt").read_text() == TEXT.replace("seven", "7")


def test_words_after_a_hunk_are_no_part_of_it_although_its_counts_say_so(root: Path) -> None:
    file.patch(diff="--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\nand then\n two\n")
    assert (root / "a.txt").read_text() == TEXT.replace("one", "1", 1)


def test_a_hunk_that_fits_at_several_places_must_say_which(root: Path) -> None:
    (root / "same.txt").write_text("x\ny\nx\ny\n")
    diff = "--- a/same.txt\n+++ b/same.txt\n@@ -{} +{} @@\n x\n-y\n+z\n"
    with pytest.raises(ValueError, match="fits at lines 1, 3 of the file"):
        file.patch(diff=diff.format("2,2", "2,2"))
    file.patch(diff=diff.format("3,2", "3,2"))
    assert (root / "same.txt").read_text() == "x\ny\nx\nz\n"


@pytest.mark.parametrize(
    ("diff", "why"),
    [
        pytest.param("no diff", "not a unified diff", id="no diff"),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n", "not a unified diff", id="no hunk"),
        pytest.param("@@ -1 +1 @@\n-one\n+1\n", "name its file", id="no file"),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n@@ here @@\n-one\n", "must be like", id="a hunk without numbers"),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n one\n", "changes nothing", id="nothing to change"),
        pytest.param("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "file.delete", id="a deletion"),
        pytest.param("--- a/a.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-one\n+1\n", "file.move", id="another name"),
        pytest.param("diff --git a/a b/b\nrename from a\nrename to b\n", "file.move", id="a rename"),
        pytest.param("diff --git a/a b/b\ncopy from a\ncopy to b\n", "file.copy", id="a copy"),
        pytest.param("diff --git a/a b/a\ndeleted file mode 100644\n", "file.delete", id="a deletion of nothing"),
        pytest.param("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", "permissions", id="a mode"),
        pytest.param(
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n",
            "a symbolic link",
            id="a link",
        ),
        pytest.param(
            "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit 1\n",
            "a submodule",
            id="a submodule",
        ),
        pytest.param("diff --git a/a b/a\nGIT binary patch\ndelta 1\n", "binary data", id="packed binary data"),
        pytest.param('--- "a/a.txt"\n+++ "b/a.txt"\n@@ -1 +1 @@\n-one\n+1\n', "name in quotes", id="a name in quotes"),
        pytest.param(
            "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\ndiff --git a/b b/b\n@@ -2 +2 @@\n-two\n+2\n",
            "no '---' and '[+]{3}' name its file",
            id="a hunk of a file without a name",
        ),
        pytest.param(
            "--- a/a.txt\n+++ b/a.txt\n@@ -6 +6 @@\n-six\n+6\n@@ -1 +1 @@\n-one\n+1\n",
            "an earlier hunk has taken its place",
            id="hunks in the wrong order",
        ),
        pytest.param(
            "--- a/a.txt\n+++ b/a.txt\n@@ -6 +6 @@\n-six\n+6\n@@ -2 +2 @@\n-one\n+1\n",
            "does not fit",
            id="hunks in the wrong order with wrong numbers",
        ),
        pytest.param(
            "--- a/a.txt\n+++ b/a.txt\n@@ -6 +6 @@\n-six\n+6\n@@ -1,0 +2 @@\n+1\n",
            "an earlier hunk has taken its place",
            id="lines before an earlier hunk",
        ),
        pytest.param("--- a/a.txt\n+++ b/a.txt\n@@ -99,0 +100 @@\n+x\n", "does not fit", id="lines after the end"),
        pytest.param(
            "--- a/a.txt\n+++ b/a.txt\n@@ -10,2 +10 @@\n ten\n-eleven\n", "the file has no line 11", id="a missing line"
        ),
        pytest.param("diff --git a/a b/a\nBinary files a/a and b/a differ\n", "binary", id="binary data"),
        pytest.param("diff --git a/a b/a\nnew file mode 100644\n", "without any lines", id="an empty file"),
        pytest.param("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n", "exists", id="a new file that exists"),
    ],
)
def test_a_diff_that_is_not_applied_says_why(root: Path, diff: str, why: str) -> None:
    with pytest.raises((ValueError, FileExistsError), match=why):
        file.patch(diff=diff)
    assert (root / "a.txt").read_text() == TEXT


def test_a_dry_run_refuses_a_new_file_where_a_link_leads_to_what_is_protected(root: Path) -> None:
    (root / ".git").mkdir()
    (root / "link").symlink_to(".git")
    with pytest.raises(PermissionError, match="'link/config'"):
        file.patch(diff="--- /dev/null\n+++ b/link/config\n@@ -0,0 +1 @@\n+x\n", dry_run=True)


# ---------------------------------------------------------------- tree


def test_a_tree_counts_all_and_shows_as_deep_as_asked(root: Path) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "x.py").write_text("12345")
    (root / ".hidden").write_text("no")
    assert file.tree(depth=1) == {
        "name": ".", "type": "directory", "size": len(TEXT) + 5, "files": 2,
        "entries": [
            {"name": "a.txt", "type": "file", "size": len(TEXT), "files": 1},
            {"name": "src", "type": "directory", "size": 5, "files": 1},
        ],
    }  # fmt: skip
    deep = file.tree(path="src", depth=2, hidden=True)
    assert [entry["name"] for entry in deep.get("entries", [])] == ["deep"]
    assert deep.get("entries", [])[0].get("entries") == [{"name": "x.py", "type": "file", "size": 5, "files": 1}]
    absolute = file.tree(path=str(root / "src"))
    assert (absolute["files"], absolute["size"]) == (1, 5)


# ---------------------------------------------------------------- what git ignores


RULES = {
    ".gitignore": "*.log\n!keep.log\n/dist/\nbuild\n# no comment.txt\nsrc/**/gen_*.py\n\\#odd\n!*/back.txt\nb[ae]d\n",
    "src/.gitignore": "!special.log\n/local.txt\nback.txt\n",
    "src/deep/.gitignore": "*\n!*.py\n",
}
FILES = (
    "a.log", "keep.log", "dist/x.js", "src/dist/x.js", "build/x", "src/build/y", "src/special.log", "src/other.log",
    "src/local.txt", "src/deep/local.txt", "src/deep/x.py", "src/gen_a.py", "src/sub/gen_b.py", "#odd",
    "no comment.txt", "back.txt", "src/back.txt", "src/sub/back.txt", "bad", "bid", "excluded.txt", "src/deep/in/y.py",
)  # fmt: skip


def make_ignoring(root: Path) -> list[str]:
    """Make a repository with rules, and return the files that git itself does not ignore."""
    run_git(root, "init", "--quiet", "--template=")
    (root / ".git" / "info").mkdir()
    (root / ".git" / "info" / "exclude").write_text("excluded.txt\n")
    for name, text in {**RULES, **dict.fromkeys(FILES, "find me\n")}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return sorted(run_git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")[:-1])


@pytest.mark.parametrize("path", ["src/", "./src", "src//", "ROOT/src/", "ROOT/"])
def test_a_directory_may_be_written_in_any_way(root: Path, path: str) -> None:
    (root / "src").mkdir()
    (root / "src" / "b.txt").write_text("b")
    assert file.tree(path=path.replace("ROOT", str(root)))["size"] == (1 if "src" in path else 1 + len(TEXT))


def test_a_name_that_begins_with_a_tilde_is_a_name(root: Path) -> None:
    (root / "~no-such-user").mkdir()
    (root / "~no-such-user" / "b.txt").write_text("b")
    assert file.glob(pattern="*", path="~no-such-user") == ["~no-such-user/b.txt"]


def test_rules_may_begin_with_a_byte_order_mark(root: Path) -> None:
    run_git(root, "init", "--quiet")
    (root / ".gitignore").write_bytes(b"\xef\xbb\xbfa.txt\n")
    assert file.glob(pattern="*.txt") == []


def test_rules_may_hold_what_is_not_utf8(root: Path) -> None:
    (root / ".gitignore").write_bytes(b"\xff\na.txt\n")
    assert file.glob(pattern="*.txt") == []


def test_without_re2_no_rules_are_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".gitignore").write_text("a.txt\n")
    monkeypatch.setitem(sys.modules, "re2", None)
    assert file.glob(pattern="*.txt") == ["a.txt"]


def test_what_git_ignores_is_left_out_as_git_does(root: Path) -> None:
    shown = make_ignoring(root)
    assert sorted(file.glob(pattern="**/*")) == shown
    assert sorted({match["path"] for match in file.search(pattern="find me")}) == sorted(set(shown) & set(FILES))
    assert file.tree(hidden=True, ignored=True)["files"] > file.tree(hidden=True)["files"] >= len(shown)
    listed = file.list(depth=9, hidden=True, ignored=False)
    kept = [entry["path"] for entry in listed if entry["type"] == "file" and not entry["path"].startswith(".git/")]
    assert sorted(kept) == shown


def test_rules_of_the_repository_count_below_its_top_too(root: Path) -> None:
    shown = make_ignoring(root)
    below = [path for path in shown if path.startswith("src/")]
    assert sorted(file.glob(pattern="**/*", path="src")) == below
    with use(context(root / "src", root)):
        assert sorted(f"src/{path}" for path in file.glob(pattern="**/*")) == below


def test_what_is_named_is_found_although_git_ignores_it(root: Path) -> None:
    make_ignoring(root)
    assert file.glob(pattern="dist/*") == ["dist/x.js"]
    assert file.glob(pattern="**/*", path="dist") == ["dist/x.js"]
    assert file.search(pattern="find", path="a.log")
    assert file.search(pattern="find", glob="build/**")
    assert "dist/x.js" in file.glob(pattern="**/*", ignored=True)
    assert "dist" in [entry["path"] for entry in file.list()]
