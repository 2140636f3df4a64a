"""The bundled pack ``git``, on real repositories."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repositories import WHO, context, make_repository, run_git

from ot.execution.tool_context import use
from ot.registry.tool_loader import read_pack_file
from ot_tools import file, git


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Path]:
    """A repository that is the working directory."""
    directory = make_repository(tmp_path / "root")
    with use(context(directory)):
        yield directory


# ---------------------------------------------------------------- the pack


def test_the_pack_is_read_without_import_and_marks_what_it_changes() -> None:
    tools = read_pack_file(Path(git.__file__), pack="git", target="ot_tools.git")
    assert [tool.name for tool in tools] == git.__all__ == sorted(git.__all__)
    assert [tool.name for tool in tools if tool.destructive] == ["commit"]
    assert [tool.name for tool in tools if not tool.read_only] == ["commit", "stage"]
    for tool in tools:
        assert {"keyword"} == {parameter.kind for parameter in tool.parameters}
        for parameter in tool.parameters:
            assert f"    {parameter.name}: " in tool.doc


@pytest.mark.parametrize("name", git.__all__)
def test_the_example_of_each_tool_runs(repo: Path, name: str) -> None:
    (repo / "src" / "app.py").write_text("again\n")
    (repo / "notes.txt").write_text("changed\n")
    if name in ("blame", "commit", "log"):
        git.stage(paths=["src"])
        git.commit(message="Again")
        git.stage(paths=["notes.txt"])
    found = re.search(r"Example:\n\s+(git\..*)", inspect.getdoc(getattr(git, name)) or "")
    assert found
    assert eval(found[1], {"git": git})


# ---------------------------------------------------------------- status


def test_status_tells_what_is_staged_and_what_is_not(repo: Path) -> None:
    assert git.status() == {
        "branch": "main", "commit": run_git(repo, "rev-parse", "HEAD").strip(), "clean": True, "files": [],
    }  # fmt: skip
    (repo / "notes.txt").write_text("one\n")
    run_git(repo, "add", "notes.txt")
    (repo / "notes.txt").write_text("two\n")
    (repo / "neü.txt").write_text("new\n")
    (repo / "src" / "hello.py").unlink()
    told = git.status()
    assert not told["clean"]
    assert told["files"] == [
        {"path": "notes.txt", "staged": "modified", "unstaged": "modified"},
        {"path": "src/hello.py", "staged": "", "unstaged": "deleted"},
        {"path": "neü.txt", "staged": "", "unstaged": "untracked"},
    ]
    assert len(git.status(untracked=False)["files"]) == 2


def test_a_file_whose_name_is_not_utf8_is_told_and_not_staged(repo: Path) -> None:
    named = repo / os.fsdecode(b"caf\xe9.txt")
    named.write_text("one\n")
    hidden = repo / os.fsdecode(b"\xe9/.onetool/secrets.yaml")
    hidden.parent.mkdir(parents=True)
    hidden.write_text("KEY: 1\n")
    assert git.status()["files"] == [{"path": "caf\ufffd.txt", "staged": "", "unstaged": "untracked"}]
    told = git.stage(paths=["."])
    assert told["staged"] == []
    assert told["left_out"] == [{"path": "caf\ufffd.txt", "why": "its name is not UTF-8: stage it with git itself"}]
    run_git(repo, "add", ".")
    run_git(repo, "commit", "--quiet", "--message", "Name it as another system does")
    (shown,) = git.show().get("files", [])
    assert (shown["path"], "+one" in shown.get("patch", "")) == ("caf\ufffd.txt", True)
    named.write_text("two\n")
    assert not git.status()["clean"]


@pytest.mark.parametrize(
    ("path", "why"),
    [("a\0b", "NUL"), ("\ud800", "an unpaired surrogate"), ("", "empty")],
    ids=["NUL", "surrogate", "empty"],
)
def test_a_path_that_cannot_be_one_is_said_to_be_so(repo: Path, path: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        git.diff(paths=[path])


def test_a_tilde_before_a_name_is_part_of_the_name(repo: Path) -> None:
    (repo / "~nobody-here").write_text("one\n")
    assert git.stage(paths=["~nobody-here"])["staged"] == ["~nobody-here"]


def test_status_of_a_repository_without_commits_has_a_branch_and_no_commit(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", "--initial-branch=first")
    with use(context(tmp_path)):
        assert git.status() == {"branch": "first", "commit": "", "clean": True, "files": []}
        assert git.log() == []
        assert git.branches() == []


def test_status_counts_what_the_upstream_lacks(repo: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "--quiet", "root", "clone")
    clone = tmp_path / "clone"
    (clone / "more.txt").write_text("more\n")
    run_git(clone, "add", ".")
    run_git(clone, "commit", "--quiet", "-m", "More")
    with use(context(clone)):
        told = git.status()
        names = [(branch["name"], branch["upstream"]) for branch in git.branches(remote=True) if not branch["current"]]
    assert (told.get("upstream"), told.get("ahead"), told.get("behind")) == ("origin/main", 1, 0)
    assert ("origin/main", "") in names


def test_a_change_of_the_same_size_in_the_second_of_the_last_look_is_seen(repo: Path) -> None:
    run_git(repo, "config", "core.trustctime", "false")
    for text in ("milk", "tea!"):
        (repo / "notes.txt").write_text(text)
        os.utime(repo / "notes.txt", (10**9, 10**9))
        if text == "milk":
            run_git(repo, "add", "notes.txt")
    os.utime(repo / ".git" / "index", (10**9, 10**9))
    assert [(told["staged"], told["unstaged"]) for told in git.status()["files"]] == [("modified", "modified")]
    assert "-milk\n" in git.diff()[0].get("patch", "")


def test_a_split_index_is_read_whole(repo: Path) -> None:
    run_git(repo, "update-index", "--split-index")
    assert git.status()["clean"]
    (repo / "notes.txt").write_text("changed\n")
    assert [change["path"] for change in git.diff()] == ["notes.txt"]
    git.stage(paths=["notes.txt"])
    assert run_git(repo, "status", "--porcelain") == "M  notes.txt\n"


def test_what_the_user_ignores_everywhere_is_neither_told_nor_staged(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ignored").write_text("*.swp\n")
    (tmp_path / "settings").write_text(f"[core]\n    excludesFile = {tmp_path / 'ignored'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    (repo / "x.swp").write_text("x")
    (repo / "notes.txt").write_text("changed\n")
    assert [told["path"] for told in git.status()["files"]] == ["notes.txt"]
    assert git.stage(paths=["."]) == {"staged": ["notes.txt"], "left_out": []}


def test_a_submodule_is_told_by_its_commit_and_not_entered(repo: Path) -> None:
    make_repository(repo / "inner")
    run_git(repo, "add", "inner")
    assert git.status()["files"] == [{"path": "inner", "staged": "added", "unstaged": ""}]
    assert [(change["path"], change["status"]) for change in git.diff(staged=True)] == [("inner", "added")]
    assert git.commit(message="A repository inside")["files"] == 1
    assert [change["path"] for change in git.log(limit=1, files=True)[0].get("files", [])] == ["inner"]
    assert "+Subproject commit " in git.show().get("files", [{}])[0].get("patch", "")
    run_git(repo / "inner", "commit", "--quiet", "--allow-empty", "-m", "More")
    assert git.status()["clean"]
    assert git.diff() == []


def test_looking_changes_nothing_in_the_repository(repo: Path) -> None:
    (repo / "notes.txt").touch()
    before = {path: path.read_bytes() for path in sorted((repo / ".git").rglob("*")) if path.is_file()}
    git.status()
    git.diff()
    git.log(files=True)
    git.blame(path="notes.txt")
    assert before == {path: path.read_bytes() for path in sorted((repo / ".git").rglob("*")) if path.is_file()}


# ---------------------------------------------------------------- log, show, blame, branches


def test_paths_begin_at_the_working_directory_and_names_at_the_repository(repo: Path) -> None:
    (repo / "src" / "hello.py").write_text("changed\n")
    with use(context(repo.parent)):
        logged = [change for commit in git.log(repo="root", files=True) for change in commit.get("files", [])]
        shown = git.show(repo="root").get("files", [])
        compared = git.diff(repo="root")
    assert {(change["path"], change["name"]) for change in logged} == {
        ("root/notes.txt", "notes.txt"),
        ("root/src/app.py", "src/app.py"),
        ("root/src/hello.py", "src/hello.py"),
    }
    for change in (*shown, *compared):
        assert (change["path"], change["name"]) == ("root/src/hello.py", "src/hello.py")
    assert shown and compared


def test_log_lists_the_newest_first_with_author_date_and_message(repo: Path) -> None:
    renamed, hello, first = git.log()
    assert [commit["subject"] for commit in (renamed, hello, first)] == ["Rename the app", "Say hello", "Begin"]
    assert (hello["author"], hello["email"], hello["date"]) == ("Bob", "bob@example.org", "2026-02-03T12:00:00+01:00")
    assert (first["body"], first["parents"]) == ("With a body.", [])
    assert hello["parents"] == [first["commit"]]
    assert "files" not in hello


def test_log_tells_the_files_of_each_commit_and_where_they_came_from(repo: Path) -> None:
    renamed, hello, first = git.log(files=True)
    assert renamed.get("files") == [
        {
            "path": "src/hello.py",
            "name": "src/hello.py",
            "status": "renamed",
            "added": 0,
            "deleted": 0,
            "old_path": "src/app.py",
        }
    ]
    assert hello.get("files") == [
        {"path": "src/app.py", "name": "src/app.py", "status": "modified", "added": 1, "deleted": 1}
    ]
    assert [(change["path"], change["status"]) for change in first.get("files", [])] == [
        ("notes.txt", "added"),
        ("src/app.py", "added"),
    ]


@pytest.mark.parametrize(
    ("asked", "subjects"),
    [
        pytest.param({"author": "BOB"}, ["Say hello"], id="by author in any case"),
        pytest.param({"author": "b.b"}, [], id="not by an expression"),
        pytest.param({"grep": "with a BODY"}, ["Begin"], id="by the message"),
        pytest.param({"since": "2026-02-10"}, ["Rename the app"], id="from a day on"),
        pytest.param({"until": "2026-02-03"}, ["Say hello", "Begin"], id="up to a whole day"),
        pytest.param({"since": "2026-02-03T10:00+00:00", "until": "2026-02-04"}, ["Say hello"], id="between two times"),
        pytest.param({"paths": ["notes.txt"]}, ["Begin"], id="by a file"),
        pytest.param({"paths": ["src/app.py"]}, ["Rename the app", "Say hello", "Begin"], id="by a file that is gone"),
        pytest.param({"paths": ["src"], "limit": 1}, ["Rename the app"], id="by a directory with a limit"),
        pytest.param({"revision": "HEAD~1"}, ["Say hello", "Begin"], id="from a revision"),
        pytest.param({"revision": "HEAD~1..main"}, ["Rename the app"], id="between two revisions"),
        pytest.param({"since": "50 years ago"}, ["Rename the app", "Say hello", "Begin"], id="by a time ago"),
    ],
)  # fmt: skip
def test_log_lists_only_what_was_asked_for(repo: Path, asked: dict[str, Any], subjects: list[str]) -> None:
    assert [commit["subject"] for commit in git.log(**asked)] == subjects


def test_a_date_that_git_would_guess_at_is_refused(repo: Path) -> None:
    with pytest.raises(ValueError, match="since must be like '2026-01-31'"):
        git.log(since="next tuesday")
    with pytest.raises(ValueError, match="until must be like '2026-01-31'"):
        git.log(until="sometime")


def test_a_message_with_control_characters_does_not_confuse_the_log(repo: Path) -> None:
    run_git(repo, "commit", "--quiet", "--allow-empty", "-m", "odd \x01\x1e\x1f\ncommit 123\n\ttab")
    assert git.log(limit=1)[0]["subject"] == "odd \x01\x1e\x1f commit 123 \ttab"
    assert len(git.log()) == 4


def test_show_tells_what_a_commit_changed(repo: Path) -> None:
    told = git.show(revision="HEAD~1")
    (change,) = told.get("files", [])
    assert told["subject"] == "Say hello"
    assert (change["path"], change["status"], change["added"], change["deleted"]) == ("src/app.py", "modified", 1, 1)
    assert "\n-    ...\n+    print('hello')\n" in change.get("patch", "")
    first = git.show(revision="HEAD~2", stat=True, paths=["src"])
    assert first.get("files") == [
        {"path": "src/app.py", "name": "src/app.py", "status": "added", "added": 2, "deleted": 0}
    ]


def test_blame_names_the_author_of_each_line(repo: Path) -> None:
    lines = git.blame(path="src/hello.py")
    assert Counter(line["author"] for line in lines) == {"Ada": 1, "Bob": 1}
    assert lines[1]["text"] == "    print('hello')"
    assert (lines[1]["date"], lines[1]["subject"]) == ("2026-02-03T12:00:00+01:00", "Say hello")
    assert [line["line"] for line in git.blame(path="notes.txt", start=2, limit=1)] == [2]


def test_a_file_is_read_as_it_was_at_a_revision(repo: Path) -> None:
    assert git.read(path="src/app.py", revision="HEAD~2") == "def main() -> None:\n    ...\n"
    assert git.read(path="src/hello.py", encoding=None) == b"def main() -> None:\n    print('hello')\n"
    (repo / "src" / "hello.py").unlink()
    (repo / "src").rmdir()
    assert "hello" in str(git.read(path="src/hello.py"))
    for path in ("src", "src/app.py"):
        with pytest.raises(FileNotFoundError, match=f"'{path}' is not a file at 'HEAD'"):
            git.read(path=path)
    with pytest.raises(ValueError, match=r"git.read\(path=..., revision=...\) returns a file at a revision"):
        git.show(revision="HEAD:notes.txt")


def test_what_programs_may_not_read_is_not_read_at_a_revision_either(repo: Path) -> None:
    (repo / ".onetool").mkdir()
    (repo / ".onetool" / "secrets.yaml").write_text("KEY: abc\n")
    run_git(repo, "add", "--force", ".onetool")
    run_git(repo, "commit", "--quiet", "-m", "By mistake")
    for path in (".onetool/secrets.yaml", "../other"):
        with pytest.raises(PermissionError):
            git.read(path=path)


def test_branches_are_listed_with_the_one_that_is_checked_out(repo: Path) -> None:
    run_git(repo, "branch", "topic/ü", "HEAD~1")
    told = git.branches()
    assert [(branch["name"], branch["current"], branch["subject"]) for branch in told] == [
        ("main", True, "Rename the app"),
        ("topic/ü", False, "Say hello"),
    ]


# ---------------------------------------------------------------- diff


def test_a_file_that_was_only_touched_does_not_differ(repo: Path) -> None:
    os.utime(repo / "notes.txt", (1, 1))
    assert git.diff() == git.diff(base="HEAD") == []


def test_diff_compares_every_pair_of_sides(repo: Path) -> None:
    (repo / "notes.txt").write_text("buy milk\ncall Bob\nsleep\n")
    assert [change["path"] for change in git.diff()] == ["notes.txt"]
    assert git.diff(staged=True) == []
    git.stage(paths=["notes.txt"])
    assert git.diff() == []
    (staged,) = git.diff(staged=True)
    assert "-call Ada\n+call Bob\n" in staged.get("patch", "")
    assert [change["path"] for change in git.diff(base="HEAD")] == ["notes.txt"]
    assert [change["status"] for change in git.diff(base="HEAD~1", target="HEAD", stat=True)] == ["renamed"]
    assert git.diff(base="HEAD~2", paths=["src/app.py"], stat=True) == [
        {"path": "src/app.py", "name": "src/app.py", "status": "deleted", "added": 0, "deleted": 2}
    ]


def test_diff_can_begin_at_the_common_ancestor(repo: Path) -> None:
    run_git(repo, "checkout", "--quiet", "-b", "topic", "HEAD~1")
    (repo / "notes.txt").write_text("on topic\n")
    run_git(repo, "commit", "--quiet", "-a", "-m", "On topic")
    both = {"notes.txt", "src/app.py"}
    assert {change["path"] for change in git.diff(base="main", target="topic", stat=True)} == both
    assert {change["path"] for change in git.diff(base="main..topic", stat=True)} == both
    own = git.diff(base="main", target="topic", merge_base=True)
    assert [change["path"] for change in own] == ["notes.txt"]
    assert own == git.diff(base="main...topic") == git.diff(base="main...") == git.diff(base="main", merge_base=True)
    with pytest.raises(ValueError, match="merge_base needs base"):
        git.diff(merge_base=True)
    tree = run_git(repo, "commit-tree", "-m", "Apart", "HEAD^{tree}").strip()
    with pytest.raises(ValueError, match="have no commit in common"):
        git.diff(base=tree, merge_base=True)


def test_one_path_may_be_given_as_text(repo: Path) -> None:
    (repo / "notes.txt").write_text("x\n")
    (repo / "src" / "hello.py").write_text("x\n")
    assert git.diff(paths="notes.txt") == git.diff(paths=["notes.txt"]) == git.diff(base="notes.txt") != []
    run_git(repo, "branch", "notes.txt")
    assert len(git.diff(base="notes.txt")) == 2
    assert git.stage(paths="notes.txt")["staged"] == ["notes.txt"]


def test_each_change_has_its_own_part_of_the_diff(repo: Path) -> None:
    (repo / "a.bin").write_bytes(b"\0\1")
    (repo / "link").symlink_to("notes.txt")
    (repo / "src" / "hello.py").chmod(0o755)
    (repo / "notes.txt").write_text("diff --git a/x b/x\n")
    run_git(repo, "add", "--all")
    run_git(repo, "commit", "--quiet", "-m", "Many kinds")
    (repo / "link").unlink()
    (repo / "link").write_text("a file now\n")
    parts = {change["path"]: change for change in git.diff(base="HEAD~1")}
    assert [*parts] == ["a.bin", "link", "notes.txt", "src/hello.py"]
    for path, change in parts.items():
        assert change.get("patch", "").startswith(f"diff --git a/{path} b/{path}\n")
    assert parts["a.bin"]["added"] is None
    assert git.diff()[0]["status"] == "type"
    assert "a file now" in git.diff()[0].get("patch", "")


def test_a_file_with_a_conflict_is_listed_once_and_takes_no_others_part(repo: Path) -> None:
    run_git(repo, "checkout", "--quiet", "-b", "topic")
    (repo / "notes.txt").write_text("theirs\n")
    run_git(repo, "commit", "--quiet", "-am", "Theirs")
    run_git(repo, "checkout", "--quiet", "main")
    (repo / "notes.txt").write_text("ours\n")
    run_git(repo, "commit", "--quiet", "-am", "Ours")
    with pytest.raises(subprocess.CalledProcessError):
        run_git(repo, "merge", "--quiet", "topic")
    (repo / "src" / "hello.py").write_text("other\n")
    conflict, other = git.diff()
    assert (conflict["path"], conflict["status"], conflict.get("patch")) == ("notes.txt", "conflict", None)
    assert (other["path"], other["status"]) == ("src/hello.py", "modified")
    assert other.get("patch", "").startswith("diff --git a/src/hello.py")


def test_what_diff_returns_can_be_applied_again(repo: Path) -> None:
    before = (repo / "notes.txt").read_text()
    (repo / "notes.txt").write_text(before.replace("Ada", "Bob") + "no line end")
    (repo / "new.txt").write_text("new\n")
    run_git(repo, "add", "--all")
    after = {name: (repo / name).read_bytes() for name in ("notes.txt", "new.txt")}
    diff = "".join(change.get("patch", "") for change in git.diff(staged=True))
    (repo / "notes.txt").write_text(before)
    (repo / "new.txt").unlink()
    assert [done["created"] for done in file.patch(diff=diff)] == [True, False]
    assert after == {name: (repo / name).read_bytes() for name in after}


# ---------------------------------------------------------------- stage and commit


def test_what_is_staged_becomes_a_commit_that_git_knows(repo: Path) -> None:
    (repo / "notes.txt").unlink()
    (repo / "src" / "more.py").write_text("more\n")
    (repo / "later.txt").write_text("later\n")
    told = git.stage(paths=["notes.txt", "src"])
    assert told == {"staged": ["notes.txt", "src/more.py"], "left_out": []}
    made = git.commit(message="Tidy up\n\nAnd say why.")
    assert (made["branch"], made["files"]) == ("main", 2)
    assert run_git(repo, "log", "-1", "--format=%H %an %s|%b").strip() == f"{made['commit']} Ada Tidy up|And say why."
    assert run_git(repo, "status", "--porcelain") == "?? later.txt\n"
    assert "commit: Tidy up" in run_git(repo, "reflog", "-1")
    run_git(repo, "fsck", "--strict")


def test_a_first_commit_can_be_made(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    run_git(tmp_path, "config", "user.name", "Ada")
    run_git(tmp_path, "config", "user.email", "ada@example.org")
    (tmp_path / "a.txt").write_text("a\n")
    with use(context(tmp_path)):
        git.stage(paths=["."])
        made = git.commit(message="Begin")
        assert [commit["commit"] for commit in git.log()] == [made["commit"]]


def test_a_linked_work_tree_has_its_own_branch_and_commits_to_it(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "worktree", "add", "--quiet", "-b", "topic", "../linked")
    linked = tmp_path / "linked"
    (linked / "notes.txt").write_text("linked\n")
    with use(context(linked, repo)):
        git.stage(paths=["notes.txt"])
        assert git.commit(message="In the linked tree")["branch"] == "topic"
        assert git.status()["clean"]
    assert "In the linked tree" in run_git(linked, "reflog", "-1")
    assert git.log(limit=1)[0]["subject"] == "Rename the app"


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        pytest.param("true", "nothing is staged", id="when nothing is staged"),
        pytest.param("git checkout -q --detach && echo x > n && git add n", "detached", id="without a branch"),
        pytest.param("echo x > n && git add n && git rev-parse HEAD > .git/MERGE_HEAD", "merge", id="during a merge"),
        pytest.param(
            "echo x > n && git add n && git config --unset user.name", "git config --global user.name", id="of nobody"
        ),
    ],
)
def test_a_commit_that_cannot_be_made_changes_nothing(
    repo: Path, prepare: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)
    subprocess.run(["bash", "-c", prepare], cwd=repo, check=True)
    before = run_git(repo, "rev-parse", "HEAD")
    with pytest.raises(ValueError, match=why):
        git.commit(message="Try")
    assert run_git(repo, "rev-parse", "HEAD") == before


def test_the_user_is_the_author_unless_that_depends_on_the_directory(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(repo, "config", "--remove-section", "user")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    settings = "[user]\n    name = Eve\n    email = eve@example.org\n"
    (tmp_path / "settings").write_text(settings)
    (repo / "notes.txt").write_text("changed\n")
    git.stage(paths=["notes.txt"])
    git.commit(message="By the user")
    assert [(commit["author"], commit["email"]) for commit in git.log(limit=1)] == [("Eve", "eve@example.org")]
    (repo / "notes.txt").write_text("again\n")
    git.stage(paths=["notes.txt"])
    (tmp_path / "settings").write_text(f'{settings}[includeIf "gitdir:{repo}/"]\n    path = work\n')
    with pytest.raises(ValueError, match="in the repository, without --global"):
        git.commit(message="By whom?")


def test_what_a_filter_would_change_is_not_staged(repo: Path) -> None:
    (repo / ".gitattributes").write_text("*.big filter=lfs\n")
    (repo / "film.big").write_bytes(b"x" * 100)
    told = git.stage(paths=["."])
    assert told["staged"] == [".gitattributes"]
    assert [(left["path"], "filter" in left["why"]) for left in told["left_out"]] == [("film.big", True)]


# ---------------------------------------------------------------- limits and errors


def test_without_git_one_error_says_how_to_get_it(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo))
    with pytest.raises(RuntimeError, match=r"program git is missing: install it .*apt install git") as missing:
        git.status()
    assert missing.type is RuntimeError


def test_outside_of_a_repository_the_error_says_so(tmp_path: Path) -> None:
    with use(context(tmp_path)), pytest.raises(FileNotFoundError, match="is not in a git repository"):
        git.status()


def test_what_git_refuses_is_an_error_that_programs_know(repo: Path) -> None:
    with pytest.raises(ValueError, match="has only 3 lines") as refused:
        git.blame(path="notes.txt", start=100)
    assert refused.type is ValueError


def test_what_git_prints_is_bounded(repo: Path) -> None:
    (repo / "long.txt").write_text("line\n" * 1000)
    run_git(repo, "add", ".")
    with use(context(repo, max_bytes=1000)), pytest.raises(ValueError, match=r"more than 1,000 bytes .*stat=True"):
        git.diff(staged=True)


def test_a_git_that_does_not_end_is_ended(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with use(context(repo, seconds=0.2)), pytest.raises(TimeoutError, match=r"0.2 s \(tools.git.seconds\)"):
        git.status()


def test_paths_are_those_of_the_working_directory(repo: Path, tmp_path: Path) -> None:
    (repo / "notes.txt").write_text("x\n")
    with use(context(tmp_path)):
        assert [change["path"] for change in git.diff(repo="root")] == ["root/notes.txt"]
        assert git.blame(path="root/notes.txt")[0]["author"] == "Ada"
        assert [commit["subject"] for commit in git.log(repo="root", paths=["root/notes.txt"])] == ["Begin"]
        assert file.read(path=git.status(repo="root")["files"][0]["path"]) == "x\n"
