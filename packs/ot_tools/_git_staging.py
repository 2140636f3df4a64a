"""Puts files into the index of a repository, and makes commits of it; no hook, filter or signature runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ot.files.run_writes import current_writes
from ot_tools._git_changes import commit_id, empty_tree, pathspecs
from ot_tools._git_history import StatusLine, status_lines
from ot_tools._git_program import GitProgram
from ot_tools._git_repository import Repository, as_text

MAX_MESSAGE = 100_000
MAX_STAGED = 10_000


@dataclass(frozen=True)
class LeftOut:
    """A path that was not staged, and why."""

    path: str
    why: str


def stage(repository: Repository, paths: Sequence[str]) -> tuple[list[str], list[LeftOut]]:
    """Put what has changed at *paths* into the index; return what was staged, and what may not be.

    Raises:
        ValueError: Nothing has changed there, or too many files have.
        PermissionError: One of the paths is a file that programs may not write.
    """
    repository.require_writable()
    wanted = pathspecs(repository, paths)
    if not wanted:
        raise ValueError("paths is empty: name the files or directories to stage")
    _, lines = status_lines(repository, untracked=True, paths=wanted)
    changed = [line for line in lines if line.unstaged != "."]
    if not changed:
        raise ValueError(f"nothing has changed at {', '.join(paths)[:200]}, or git ignores it")
    if len(changed) > MAX_STAGED:
        raise ValueError(f"{len(changed):,} files have changed there, more than {MAX_STAGED:,}: stage fewer at a time")
    filtered = _find_filtered(repository, changed)
    why = {line.path: _why_not(repository, line, filtered) for line in changed}
    given = {repository.inside(path) for path in paths}
    for path, reason in why.items():
        if reason and path in given:
            raise PermissionError(f"{repository.show_path(path)!r} is not staged: {reason}")
    staged = [path for path, reason in why.items() if not reason]
    if staged:
        current_writes().spend(0)  # it keeps copies
        names = b"".join(os.fsencode(path) + b"\0" for path in staged)
        repository.git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)
    named = {path: repository.show_path(path) for path in why}
    return [named[path] for path in staged], [LeftOut(named[path], reason) for path, reason in why.items() if reason]


def _why_not(repository: Repository, line: StatusLine, filtered: frozenset[str]) -> str:
    if as_text(line.path) != line.path:
        return "its name is not UTF-8: stage it with git itself"
    if line.path.endswith("/"):
        return "it is a repository of its own"
    if line.unstaged == "U":
        return "it has a conflict, which a person resolves"
    if line.path in filtered:
        return "its attributes name a filter, which is not run here: stage it with git itself"
    if why := repository.guard.why_not(f"{repository.top}/{line.path}", write=True):
        return why
    return "" if repository.may_read(line.path) else "it may not be read"


def _find_filtered(repository: Repository, lines: Sequence[StatusLine]) -> frozenset[str]:
    """Return the paths whose content would go through a filter such as that of Git LFS."""
    names = b"".join(os.fsencode(line.path) + b"\0" for line in lines)
    told = repository.git.run("check-attr", "-z", "--stdin", "filter", stdin=names)
    tokens = [os.fsdecode(token) for token in told.split(b"\0")]
    rows = zip(tokens[0::3], tokens[2::3], strict=False)
    return frozenset(path for path, value in rows if value not in ("unspecified", "unset"))


def commit(repository: Repository, message: str) -> tuple[str, str]:
    """Make a commit of what is staged, on the branch that is checked out; return its id and the branch.

    Raises:
        ValueError: Nothing is staged, no branch is checked out, a merge is under way, or nobody is named as author.
    """
    repository.require_writable()
    if not message.strip():
        raise ValueError("message is empty: say what the commit changes")
    if len(message) > MAX_MESSAGE or "\0" in message:
        raise ValueError(f"message must have at most {MAX_MESSAGE:,} characters, none of them NUL")
    if not repository.head.startswith("refs/heads/"):
        raise ValueError("no branch is checked out (HEAD is detached): ask the user to check one out")
    if repository.is_merging:
        raise ValueError("a merge, rebase or cherry-pick is under way: ask the user to finish it")
    parent = _parent(repository)
    git = _with_author(repository)
    tree = git.run("write-tree").decode().strip()
    before = (
        git.run("rev-parse", "--verify", f"{parent}^{{tree}}").decode().strip() if parent else empty_tree(repository)
    )
    if tree == before:
        raise ValueError("nothing is staged: use git.stage first")
    text = message.encode(errors="replace").strip() + b"\n"
    parents = ("-p", parent) if parent else ()
    made = git.run("commit-tree", *parents, "-F", "-", tree, stdin=text).decode().strip()
    subject = message.strip().splitlines()[0][:200]
    # The old value is given too, so that a commit which came meanwhile is not lost.
    git.run("update-ref", "--create-reflog", "-m", f"commit: {subject}", "HEAD", made, parent or "0" * len(made))
    return made, repository.head.removeprefix("refs/heads/")


def _parent(repository: Repository) -> str:
    try:
        return commit_id(repository, "HEAD")
    except ValueError:
        return ""


def _with_author(repository: Repository) -> GitProgram:
    """Return git with the author's name and address, from the repository's settings or else the user's own."""
    known = {key: repository.settings.get(f"user.{key}", "") for key in ("name", "email")}
    if not all(known.values()):
        raise ValueError(
            "nobody is named as author: ask the user to set it with "
            "git config --global user.name NAME and git config --global user.email ADDRESS; "
            "whose settings choose it by directory (includeIf) sets it in the repository, without --global"
        )
    who = {f"GIT_{role}_{key.upper()}": value for role in ("AUTHOR", "COMMITTER") for key, value in known.items()}
    return replace(repository.git, environ={**repository.git.environ, **who})
