"""Repositories, arguments and paths that try to make the pack ``git`` run, read or write what it must not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from git_repositories import context, make_repository, run_git

from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard
from ot.files.protected_paths import LockedPath
from ot_tools import _git_changes, _git_program, _git_staging, git
from ot_tools._git_program import GitProgram

SECRET = "the secret words"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Path]:
    """A repository that is the working directory, beside a directory that is not allowed."""
    directory = make_repository(tmp_path / "root")
    with use(context(directory)):
        yield directory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A repository that no program may see, with a secret in its history, its message and its files."""
    directory = make_repository(tmp_path / "outside")
    (directory / "private.txt").write_text(f"{SECRET}\n")
    run_git(directory, "add", ".")
    run_git(directory, "commit", "--quiet", "-m", SECRET)
    return directory


def every_tool(path: str = "notes.txt") -> str:
    """Return all that the tools tell, also their errors."""
    told: list[str] = []
    calls: list[Callable[[], Any]] = [
        git.status,
        lambda: git.log(files=True),
        git.diff,
        lambda: git.diff(base="HEAD"),
        lambda: git.diff(base="HEAD~1", target="HEAD"),
        git.show,
        lambda: git.blame(path=path),
        lambda: git.branches(remote=True),
        lambda: git.stage(paths=["."]),
        lambda: git.diff(staged=True),
        lambda: git.commit(message="A try"),
    ]
    for call in calls:
        try:
            told.append(str(call()))
        except (OSError, ValueError) as error:
            told.append(str(error))
    return "\n".join(told)


# ---------------------------------------------------------------- what a repository would run


def setting(name: str, value: str) -> Callable[[Path, str], object]:
    return lambda repo, command: run_git(repo, "config", name, value.replace("COMMAND", command))


def attributes(text: str, *settings: tuple[str, str]) -> Callable[[Path, str], None]:
    def make(repo: Path, command: str) -> None:
        (repo / ".gitattributes").write_text(text)
        for name, value in settings:
            setting(name, value)(repo, command)

    return make


def hook(name: str, directory: str = ".git/hooks") -> Callable[[Path, str], None]:
    def make(repo: Path, command: str) -> None:
        (repo / directory).mkdir(exist_ok=True)
        (repo / directory / name).write_text(f"#!/bin/sh\n{command}\n")
        (repo / directory / name).chmod(0o755)
        if directory != ".git/hooks":
            run_git(repo, "config", "core.hooksPath", directory)

    return make


def included(repo: Path, command: str) -> None:
    (repo / "more").write_text(f'[core]\n    fsmonitor = "{command}; false"\n')
    run_git(repo, "config", "include.path", "../more")


def of_the_work_tree(repo: Path, command: str) -> None:
    run_git(repo, "config", "extensions.worktreeConfig", "true")
    run_git(repo, "config", "--worktree", "core.fsmonitor", f"{command}; false")


def submodule(repo: Path, command: str) -> None:
    make_repository(repo / "inner")
    run_git(repo, "add", "inner")
    run_git(repo, "commit", "--quiet", "-m", "A repository inside")
    run_git(repo / "inner", "config", "core.fsmonitor", f"{command}; false")


def promisor(repo: Path, command: str) -> None:
    blob = run_git(repo, "rev-parse", "HEAD~2:src/app.py").strip()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", "host:path"),
        ("remote.origin.promisor", "true"),
        ("core.sshCommand", f"{command}; false"),
    ):
        run_git(repo, "config", name, value)


def signing(repo: Path, command: str) -> None:
    program = repo / ".git" / "sign"
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)
    run_git(repo, "config", "gpg.program", str(program))
    run_git(repo, "config", "commit.gpgSign", "true")


CHANGE = "echo changed >> notes.txt; "
TRAPS = [
    pytest.param(setting("core.fsmonitor", "COMMAND; false"), "git status", id="a monitor of files"),
    pytest.param(included, "git status", id="a monitor from an included file"),
    pytest.param(of_the_work_tree, "git status", id="a monitor from the settings of a work tree"),
    pytest.param(submodule, "git status", id="a monitor in a submodule"),
    pytest.param(setting("diff.external", "COMMAND;:"), f"{CHANGE} git diff", id="an external diff"),
    pytest.param(
        attributes("* diff=evil\n", ("diff.evil.textconv", "COMMAND;:")), f"{CHANGE} git diff", id="a text converter"
    ),
    pytest.param(
        attributes("* diff=evil\n", ("diff.evil.command", "COMMAND;:")), f"{CHANGE} git diff", id="a driver of diffs"
    ),
    pytest.param(
        attributes("* filter=evil\n", ("filter.evil.clean", "COMMAND;cat")), f"{CHANGE} git add .", id="a clean filter"
    ),
    pytest.param(
        attributes("* filter=evil\n", ("filter.evil.process", "COMMAND;false"), ("filter.evil.required", "true")),
        f"{CHANGE} git add .", id="a filter process",
    ),
    pytest.param(hook("pre-commit"), "git commit --allow-empty -m x", id="a hook before commits"),
    pytest.param(hook("post-commit", "hidden"), "git commit --allow-empty -m x", id="a hook in another directory"),
    pytest.param(hook("reference-transaction"), "git update-ref refs/x HEAD", id="a hook on references"),
    pytest.param(hook("post-index-change"), f"{CHANGE} git add .", id="a hook on the index"),
    pytest.param(signing, "git commit --allow-empty -m x", id="a program that signs"),
    pytest.param(promisor, "git show HEAD~2", id="a remote that is asked for missing objects"),
]  # fmt: skip


@pytest.mark.parametrize(("trap", "control"), TRAPS)
def test_nothing_runs_that_a_repository_names(
    repo: Path, tmp_path: Path, trap: Callable[[Path, str], object], control: str
) -> None:
    mark = tmp_path / "ran"
    trap(repo, f"touch {mark}")
    with suppress(subprocess.CalledProcessError):
        subprocess.run(["bash", "-c", control], cwd=repo, check=False, capture_output=True)
    assert mark.exists(), "git itself does not fall into this trap"
    mark.unlink()
    (repo / "notes.txt").write_text("changed again\n")
    told = every_tool()
    with suppress(ValueError):
        git.show(revision="HEAD~2")
    assert "notes.txt" in told
    assert not mark.exists()


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"GIT_EXTERNAL_DIFF": "COMMAND"}, id="an external diff"),
        pytest.param(
            {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "COMMAND; false"},
            id="a setting",
        ),
        pytest.param({"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='COMMAND; false'"}, id="a parameter"),
    ],
)
def test_nothing_runs_that_the_servers_environment_names(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    mark = tmp_path / "ran"
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("COMMAND", f"touch {mark}"))
    (repo / "notes.txt").write_text("changed\n")
    subprocess.run(["git", "diff"], cwd=repo, check=False, capture_output=True)
    assert mark.exists(), "git itself does not fall into this trap"
    mark.unlink()
    every_tool()
    assert not mark.exists()


# ---------------------------------------------------------------- where a repository would lead


def point_file(repo: Path, outside: Path) -> None:
    (repo / ".git").rename(repo / "old")
    (repo / ".git").write_text(f"gitdir: {outside}/.git\n")


def point_link(repo: Path, outside: Path) -> None:
    (repo / ".git").rename(repo / "old")
    (repo / ".git").symlink_to(outside / ".git")


def common(repo: Path, outside: Path) -> None:
    (repo / ".git" / "commondir").write_text(f"{outside}/.git\n")
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def alternates(repo: Path, outside: Path) -> None:
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{outside}/.git/objects\n")
    (repo / ".git" / "refs" / "heads" / "main").write_text(run_git(outside, "rev-parse", "HEAD"))


def linked(name: str) -> Callable[[Path, Path], None]:
    def make(repo: Path, outside: Path) -> None:
        target = outside / ".git" / name
        if name == "packed-refs":
            target.write_text(f"{SECRET}\n")
        if (place := repo / ".git" / name).exists():
            place.rename(repo / "old")
        place.symlink_to(target)

    return make


def linked_objects(repo: Path, outside: Path) -> None:
    for place in (outside / ".git" / "objects").iterdir():
        if not (here := repo / ".git" / "objects" / place.name).exists():
            here.symlink_to(place)
    (repo / ".git" / "refs" / "heads" / "main").write_text(run_git(outside, "rev-parse", "HEAD"))


def linked_pack(repo: Path, outside: Path) -> None:
    run_git(outside, "gc", "--quiet")
    for place in (outside / ".git" / "objects" / "pack").iterdir():
        (repo / ".git" / "objects" / "pack" / place.name).symlink_to(place)
    (repo / ".git" / "refs" / "heads" / "main").write_text(run_git(outside, "rev-parse", "HEAD"))


def head_is_a_secret(repo: Path, outside: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    (repo / ".git" / "HEAD").symlink_to(outside / "private.txt")


def other_work_tree(repo: Path, outside: Path) -> None:
    run_git(repo, "config", "core.worktree", str(outside))


def log_leads_out(repo: Path, outside: Path) -> None:
    (repo / ".git" / "logs" / "HEAD").unlink()
    (repo / ".git" / "logs" / "HEAD").symlink_to(outside / "private.txt")


def log_is_shared(repo: Path, outside: Path) -> None:
    (repo / ".git" / "logs" / "HEAD").unlink()
    os.link(outside / "private.txt", repo / ".git" / "logs" / "HEAD")


def links_in_the_work_tree(repo: Path, outside: Path) -> None:
    (repo / "notes.txt").unlink()
    (repo / "notes.txt").symlink_to(outside / "private.txt")
    (repo / "directory").symlink_to(outside)


def rules_lead_out(repo: Path, outside: Path) -> None:
    for name in (".gitignore", ".gitattributes", ".mailmap"):
        (repo / name).symlink_to(outside / "private.txt")
    (repo / ".git" / "info" / "exclude").unlink()
    (repo / ".git" / "info" / "exclude").symlink_to(outside / "private.txt")


def bad_settings(repo: Path, outside: Path) -> None:
    (repo / ".git" / "config").unlink()
    (repo / ".git" / "config").symlink_to(outside / "private.txt")


LEADS = [
    pytest.param(point_file, id="by a file that names another repository"),
    pytest.param(point_link, id="by a link in place of .git"),
    pytest.param(common, id="by a common directory"),
    pytest.param(alternates, id="by borrowed objects"),
    pytest.param(linked("objects"), id="by a link to all objects"),
    pytest.param(linked_objects, id="by links to some objects"),
    pytest.param(linked_pack, id="by links to packs of objects"),
    pytest.param(linked("refs"), id="by a link to references"),
    pytest.param(linked("packed-refs"), id="by a link to packed references"),
    pytest.param(linked("index"), id="by a link to an index"),
    pytest.param(linked("logs"), id="by a link to logs"),
    pytest.param(head_is_a_secret, id="by a link in place of HEAD"),
    pytest.param(bad_settings, id="by a link in place of its settings"),
    pytest.param(other_work_tree, id="by another work tree"),
    pytest.param(log_leads_out, id="by a link in place of a log"),
    pytest.param(log_is_shared, id="by another name of a file in place of a log"),
    pytest.param(links_in_the_work_tree, id="by links in the work tree"),
    pytest.param(rules_lead_out, id="by links in place of rules"),
]


@pytest.mark.parametrize("lead", LEADS)
def test_no_repository_leads_out_of_the_allowed_directories(
    repo: Path, outside: Path, lead: Callable[[Path, Path], None]
) -> None:
    lead(repo, outside)
    (repo / "made.txt").write_text("to be staged and committed\n")
    before = {path: path.read_bytes() for path in sorted(outside.rglob("*")) if path.is_file()}
    told = every_tool()
    assert SECRET not in told
    assert "outside/notes.txt" not in told
    assert before == {path: path.read_bytes() for path in sorted(outside.rglob("*")) if path.is_file()}
    for path in (repo / ".git").rglob("*") if not (repo / ".git").is_symlink() else ():
        if path.is_file() and not path.is_symlink() and path.name != "HEAD":
            assert SECRET not in path.read_text(errors="replace")


def test_an_index_that_is_split_leads_no_further_than_another(repo: Path, outside: Path) -> None:
    run_git(outside, "update-index", "--split-index")
    (shared,) = (outside / ".git").glob("sharedindex.*")
    (repo / ".git" / "index").write_bytes((outside / ".git" / "index").read_bytes())
    (repo / ".git" / shared.name).symlink_to(shared)
    for call in (git.status, lambda: git.stage(paths=["."])):
        with pytest.raises(PermissionError):
            call()


def test_a_repository_around_the_allowed_directory_is_not_used(repo: Path) -> None:
    with use(context(repo / "src")), pytest.raises(FileNotFoundError, match="not in a git repository inside"):
        git.log()


def test_objects_that_borrow_from_each_other_end_in_an_error(repo: Path) -> None:
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{repo}/.git/objects\n")
    with pytest.raises(ValueError, match="too many directories"):
        git.log()


def test_a_repository_of_an_unknown_form_is_refused(repo: Path) -> None:
    run_git(repo, "config", "core.repositoryFormatVersion", "1")
    run_git(repo, "config", "extensions.strange", "yes")
    with pytest.raises(ValueError, match=r"form that is not supported \(strange\)"):
        git.status()


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "revision",
    [
        pytest.param("--output=written", id="an option with a file"),
        pytest.param("-p", id="a short option"),
        pytest.param("--all", id="an option without a value"),
        pytest.param("HEAD --output=written", id="an option after a space"),
        pytest.param("HEAD\n--output=written", id="an option in a further line"),
        pytest.param("HEAD:notes.txt", id="the content of a file"),
        pytest.param(":/Begin", id="a search"),
        pytest.param("refs/heads/*", id="a pattern"),
        pytest.param("^HEAD", id="an exclusion"),
        pytest.param("HEAD...main", id="three dots"),
        pytest.param("@{-1}", id="the branch before"),
        pytest.param("", id="nothing"),
        pytest.param("HEAD\0", id="a NUL"),
        pytest.param("x" * 5000, id="a long text"),
        pytest.param(["HEAD"], id="no text"),
    ],
)
def test_a_revision_is_nothing_but_a_revision(repo: Path, revision: Any) -> None:
    why = (
        "not a commit|three dots"
        if revision in ("HEAD...main", "@{-1}")
        else "is not a revision|must be text|requires base"
    )
    for call in (git.log, git.show, lambda revision: git.diff(base=revision, target=revision or "--all")):
        with pytest.raises((ValueError, TypeError), match=why):
            call(revision=revision)
    assert not (repo / "written").exists()
    assert not (repo / ".git" / "written").exists()


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"author": "--output=written"}, id="author"),
        pytest.param({"grep": "x\n--output=written"}, id="grep"),
        pytest.param({"since": "--output=written"}, id="since"),
        pytest.param({"until": "1 day ago --all"}, id="until"),
        pytest.param({"paths": ["--output=written"]}, id="paths"),
        pytest.param({"paths": [":(exclude)notes.txt"]}, id="magic in paths"),
        pytest.param({"paths": [":/"]}, id="the top in paths"),
        pytest.param({"paths": ["*"]}, id="a pattern in paths"),
        pytest.param({"limit": "1 --all"}, id="limit"),
    ],
)
def test_an_argument_is_never_read_as_an_option_or_pattern(repo: Path, asked: dict[str, Any]) -> None:
    try:
        found = git.log(**asked)
    except (ValueError, TypeError):
        found = []
    assert found == []
    assert not (repo / "written").exists()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../outside/private.txt", id="by dots"),
        pytest.param("/etc/passwd", id="by an absolute path"),
        pytest.param("~/.bashrc", id="in the home directory"),
        pytest.param(".git/config", id="git's own settings"),
        pytest.param(".GIT/config", id="git's own settings in capitals"),
        pytest.param("src/../../outside/private.txt", id="by dots inside"),
        pytest.param("directory/private.txt", id="through a link"),
    ],
)
def test_a_path_outside_is_refused_by_every_tool(repo: Path, outside: Path, path: str) -> None:
    (repo / "directory").symlink_to(outside)
    calls: list[Callable[[], Any]] = [
        lambda: git.log(paths=[path]),
        lambda: git.diff(paths=[path]),
        lambda: git.show(paths=[path]),
        lambda: git.blame(path=path, repo="."),
        lambda: git.stage(paths=[path]),
    ]
    for call in calls:
        with pytest.raises(PermissionError):
            call()


def test_files_with_names_like_options_are_only_files(repo: Path) -> None:
    names = ["--output=written", "-n", ":(top)x", "a\nb", 'quo"te', "*"]
    for name in names:
        (repo / name).write_text("text\n")
    assert sorted(git.stage(paths=names)["staged"]) == sorted(names)
    git.commit(message="--amend")
    assert [commit["subject"] for commit in git.log(limit=2)] == ["--amend", "Rename the app"]
    assert sorted(change["path"] for change in git.show().get("files", [])) == sorted(names)
    assert git.blame(path="-n")[0]["text"] == "text"
    assert not (repo / "written").exists()


# ---------------------------------------------------------------- what programs may not see or change


def with_secret(repo: Path, *, name: str = ".onetool/secrets.yaml") -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(f"key: {SECRET} of old\n")
    run_git(repo, "add", "--force", name)
    run_git(repo, "commit", "--quiet", "-m", "Oops")
    (repo / name).write_text(f"key: {SECRET} of now\n")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(git.status, id="status"),
        pytest.param(lambda: git.log(files=True), id="log"),
        pytest.param(git.diff, id="diff"),
        pytest.param(lambda: git.diff(base="HEAD"), id="diff with a commit"),
        pytest.param(lambda: git.diff(base="HEAD~1", target="HEAD"), id="diff of commits"),
        pytest.param(lambda: git.diff(base="HEAD~1", staged=True), id="diff of the index"),
        pytest.param(git.show, id="show"),
        pytest.param(lambda: git.blame(path=".onetool/secrets.yaml"), id="blame"),
        pytest.param(lambda: git.show(paths=[".onetool"]), id="show of its directory"),
        pytest.param(lambda: git.diff(paths=[".onetool/secrets.yaml"]), id="diff of its path"),
        pytest.param(lambda: git.stage(paths=["."]), id="stage"),
        pytest.param(lambda: git.stage(paths=[".onetool/secrets.yaml"]), id="stage of its path"),
    ],
)
def test_a_secret_in_the_repository_is_not_shown(repo: Path, call: Callable[[], Any]) -> None:
    with_secret(repo)
    try:
        told = str(call())
    except (PermissionError, ValueError) as error:
        told = str(error).replace("'.onetool/secrets.yaml'", "")  # as the caller wrote it
    assert SECRET not in told
    assert "secrets.yaml" not in told
    assert run_git(repo, "diff", "--cached") == ""


def test_a_secret_file_of_the_user_is_not_shown_by_any_name(repo: Path) -> None:
    with_secret(repo, name="keys.txt")
    os.link(repo / "keys.txt", repo / "notes2.txt")
    (repo / "notes.txt").unlink()
    os.link(repo / "keys.txt", repo / "notes.txt")
    with use(ToolContext(guard=PathGuard((repo,), hidden=(repo / "keys.txt",)), cwd=repo)):
        assert SECRET not in every_tool()
    assert SECRET not in run_git(repo, "log", "-p", "-1", "--", "notes.txt", "notes2.txt")


def test_a_secret_file_with_a_name_like_a_pattern_hides_itself_and_no_other(repo: Path) -> None:
    for name in ("k[e]y.txt", "k*y.txt", "key.txt"):
        with_secret(repo, name=name)
    hidden = (repo / "k[e]y.txt", repo / "k*y.txt")
    with use(ToolContext(guard=PathGuard((repo,), hidden=hidden), cwd=repo)):
        assert [change["path"] for change in git.diff()] == ["key.txt"]


def test_a_diff_is_told_to_start_no_program() -> None:
    assert {"--no-ext-diff", "--no-textconv"} < {*_git_changes.SAFE}


@pytest.mark.parametrize("name", [".vscode/tasks.json", ".githooks/pre-commit", ".envrc", "node_modules/x.js"])
def test_what_programs_may_not_write_they_may_not_stage(repo: Path, name: str) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text("run me\n")
    told = git.stage(paths=["."])
    assert (told["staged"], [left["path"] for left in told["left_out"]]) == ([], [name])
    with pytest.raises(PermissionError, match="is not staged"):
        git.stage(paths=[name])
    assert run_git(repo, "diff", "--cached") == ""


@pytest.mark.parametrize(
    "guard",
    [
        pytest.param(lambda repo: PathGuard((repo,), locked=lambda: [LockedPath(repo, "it is shared")]), id="locked"),
        pytest.param(lambda repo: PathGuard((repo / "src",), shown=(repo,)), id="only shown"),
    ],
)
def test_a_repository_that_is_not_written_is_neither_staged_nor_committed_to(
    repo: Path, guard: Callable[[Path], PathGuard]
) -> None:
    (repo / "notes.txt").write_text("changed\n")
    run_git(repo, "add", ".")
    (repo / "notes.txt").write_text("changed again\n")
    before = (repo / ".git" / "index").read_bytes(), run_git(repo, "rev-parse", "HEAD")
    with use(ToolContext(guard=guard(repo), cwd=repo)):
        assert git.log(repo=str(repo), limit=1)
        for call in (
            lambda: git.stage(paths=[str(repo / "notes.txt")], repo=str(repo)),
            lambda: git.commit(message="A try", repo=str(repo)),
        ):
            with pytest.raises(PermissionError):
                call()
    assert before == ((repo / ".git" / "index").read_bytes(), run_git(repo, "rev-parse", "HEAD"))


def test_a_linked_work_tree_of_a_repository_that_is_only_shown_is_not_staged(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "worktree", "add", "--quiet", "-b", "topic", "../linked")
    linked = tmp_path / "linked"
    (linked / "notes.txt").write_text("changed\n")
    with use(ToolContext(guard=PathGuard((linked,), shown=(repo,)), cwd=linked)):
        assert [told["path"] for told in git.status()["files"]] == ["notes.txt"]
        with pytest.raises(PermissionError, match="is not changed"):
            git.stage(paths=["notes.txt"])


def test_the_old_name_of_what_was_a_secret_is_not_told(repo: Path) -> None:
    with_secret(repo)
    run_git(repo, "mv", ".onetool/secrets.yaml", "plain.txt")
    assert git.status()["files"] == [{"path": "plain.txt", "staged": "renamed", "unstaged": "modified"}]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells that git sleeps")
@pytest.mark.parametrize("name", [".gitignore", "sub/.gitignore"])
def test_git_does_not_wait_for_a_pipe(repo: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(_git_program, "STALL_SECONDS", 0.2)
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).unlink(missing_ok=True)
    os.mkfifo(repo / name)
    with pytest.raises(TimeoutError, match="waits for input that never comes"):
        git.status()


def test_a_repository_inside_is_not_staged(repo: Path) -> None:
    make_repository(repo / "inner")
    told = git.stage(paths=["."])
    assert told == {"staged": [], "left_out": [{"path": "inner/", "why": "it is a repository of its own"}]}


# ---------------------------------------------------------------- sizes, and what is malformed


@pytest.mark.parametrize(
    ("call", "why"),
    [
        pytest.param(lambda: git.log(paths=["notes.txt"] * 501), "501 paths are more than 500", id="paths"),
        pytest.param(lambda: git.log(author="a" * 1001), "author must be one line of at most 1,000", id="an author"),
        pytest.param(lambda: git.log(grep="a\0"), "grep must be one line", id="a NUL in a text"),
        pytest.param(lambda: git.show(revision="a" * 251), "is not a revision", id="a revision"),
        pytest.param(lambda: git.commit(message="a" * 100_001), "at most 100,000 characters", id="a message"),
        pytest.param(lambda: git.commit(message="a\0b"), "none of them NUL", id="a NUL in a message"),
    ],
)
def test_what_is_too_much_is_refused_before_git_sees_it(repo: Path, call: Callable[[], Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()


def test_no_more_files_are_staged_or_left_out_than_one_call_may(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_secret(repo)
    monkeypatch.setattr(_git_changes, "MAX_LEFT_OUT", 0)
    with pytest.raises(PermissionError, match="more than 0 of these files may not be read"):
        git.diff()
    (repo / "notes.txt").write_text("changed\n")
    monkeypatch.setattr(_git_staging, "MAX_STAGED", 0)
    with pytest.raises(ValueError, match="1 files have changed there, more than 0"):
        git.stage(paths=["notes.txt"])


def deep_references(repo: Path) -> None:
    (repo / ".git" / "refs" / "/".join("d" * 70)).mkdir(parents=True)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(lambda repo: (repo / ".git" / "HEAD").write_text("a" * 70_000), "more than 65,536", id="sizes"),
        pytest.param(lambda repo: (repo / ".git" / "HEAD").write_text("else\n"), "neither a branch nor", id="a HEAD"),
        pytest.param(lambda repo: (repo / ".git" / "config").write_text("[["), "valid git config file", id="settings"),
        pytest.param(deep_references, "directories without end", id="references"),
    ],
)  # fmt: skip
def test_a_repository_is_refused_for_malformed(repo: Path, make: Callable[[Path], object], why: str) -> None:
    make(repo)
    with pytest.raises((PermissionError, ValueError), match=why):
        git.status()


def test_the_settings_of_a_repository_are_not_taken_for_the_users(repo: Path, outside: Path) -> None:
    (outside / "private.txt").write_text("*.swp\n")
    run_git(repo, "config", "core.excludesFile", str(outside / "private.txt"))
    (repo / "x.swp").write_text("x")
    assert [told["path"] for told in git.status()["files"]] == ["x.swp"]


def test_a_setting_stays_one_setting(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "config", "user.name", f"Ada\n[core]\n    fsmonitor = touch {tmp_path}/ran; false")
    run_git(repo, "checkout", "--quiet", "-b", 'we"ird', "--track", "main")
    assert git.status().get("upstream") == "main"
    assert not (tmp_path / "ran").exists()


def test_a_commit_that_came_meanwhile_is_not_lost(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = GitProgram.run

    def slow(self: GitProgram, *args: str, **options: Any) -> bytes:
        done = run(self, *args, **options)
        if args[0] == "commit-tree":
            run_git(repo, "commit", "--quiet", "--allow-empty", "-m", "Meanwhile")
        return done

    (repo / "notes.txt").write_text("changed\n")
    git.stage(paths=["notes.txt"])
    monkeypatch.setattr(GitProgram, "run", slow)
    with pytest.raises(ValueError, match="HEAD"):
        git.commit(message="Mine")
    assert run_git(repo, "log", "-1", "--format=%s") == "Meanwhile\n"
