"""What differs between commits, the index and the work tree, without what programs may not read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ot_tools._git_repository import Repository, as_text

MAX_REVISION = 250
MAX_LEFT_OUT = 500
MAX_PATHS = 500

SAFE = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--diff-algorithm=histogram",
)
"""What keeps a diff from running a program, entering a submodule, or looking other than expected."""
STATUSES = {"A": "added", "C": "copied", "D": "deleted", "M": "modified", "R": "renamed", "T": "type", "U": "conflict"}
SECTION = b"\ndiff --"

_REVISION = re.compile(r"[^\x00-\x20\x7f:?*\[\\^~@-][^\x00-\x20\x7f:?*\[\\]*|@(?:[~^{][^\x00-\x20\x7f:?*\[\\]*)?")


@dataclass
class Difference:
    """A file that differs; the numbers count lines, and are None for binary data."""

    path: str
    status: str
    old_path: str | None = None
    added: int | None = None
    deleted: int | None = None
    patch: str | None = None
    name: str = ""
    """Its path from the top of the repository."""


def commit_id(repository: Repository, revision: str) -> str:
    """Return the full id of the commit that *revision* means.

    Raises:
        ValueError: It is no revision, or there is no such commit.
    """
    if not isinstance(revision, str) or len(revision) > MAX_REVISION or not _REVISION.fullmatch(revision):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        file = "; git.read(path=..., revision=...) returns a file at a revision" if ":" in str(revision) else ""
        raise ValueError(f"{revision!r:.200} is not a revision: give a branch, a tag or the id of a commit{file}")
    name = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    found = repository.git.run(*name, accepted=(0, 1, 128)).decode().strip()
    if not re.fullmatch(r"[0-9a-f]{40,64}", found):
        raise ValueError(f"{revision!r} is not a commit of this repository: git.branches lists its branches")
    return found


def common_ancestor(repository: Repository, base: str, target: str) -> str:
    """Return the id of the best commit that both come from.

    Raises:
        ValueError: There is none.
    """
    found = repository.git.run("merge-base", base, commit_id(repository, target), accepted=(0, 1)).decode().strip()
    if not found:
        raise ValueError(f"{base!r} and {target!r} have no commit in common: leave out merge_base")
    return found


def empty_tree(repository: Repository) -> str:
    """Return the id of a tree without any files, which is what a first commit is compared with."""
    return repository.git.run("hash-object", "-t", "tree", "--stdin").decode().strip()


def pathspecs(repository: Repository, paths: str | Sequence[str]) -> list[str]:
    """Return the arguments that stand for paths which a program gives, each meant as it is written."""
    paths = [paths] if isinstance(paths, str) else paths
    if len(paths) > MAX_PATHS:
        raise ValueError(f"{len(paths):,} paths are more than {MAX_PATHS}: give directories")
    inside = map(repository.inside, paths)
    return [":(top)" if path == "." else f":(top,literal){path}" for path in inside]


@dataclass(frozen=True)
class Comparison:
    """Two sides of a repository, as arguments of ``git diff``, and which paths count."""

    repository: Repository
    sides: tuple[str, ...]
    """Ids of commits or trees, or ``--cached``; the work tree is the other side where there is only one."""
    paths: tuple[str, ...] = ()
    context: int = 3

    def changes(self, limit: int, *, hunks: bool) -> list[Difference]:
        """Return the files that differ, by path, with their hunks if asked for."""
        left_out = self._list_left_out()
        listed = self._run("--find-renames", "--raw", "--numstat", "-z", left_out=left_out)
        found = [*islice(_parse(listed), limit)]
        if hunks:
            text = self._run("--find-renames", "--patch", f"--unified={self.context}", left_out=left_out)
            _add_patches(found, text)
        for change in found:
            change.name = as_text(change.path)
            change.path = self.repository.show_path(change.path)
            change.old_path = change.old_path and self.repository.show_path(change.old_path)
        return found

    def _list_left_out(self) -> list[str]:
        """Return the paths that differ and may not be shown."""
        names = self._run("--no-renames", "--name-only", "-z").split(b"\0")
        may = self.repository.may_read if self._sees_files else self.repository.may_show
        hidden = [path for path in map(os.fsdecode, filter(None, names)) if not may(path)]
        if len(hidden) > MAX_LEFT_OUT:
            raise PermissionError(f"more than {MAX_LEFT_OUT} of these files may not be read: name others with paths=")
        return hidden

    @property
    def _sees_files(self) -> bool:
        return "--cached" not in self.sides and len(self.sides) < 2

    def _run(self, *options: str, left_out: Sequence[str] = ()) -> bytes:
        without = [f":(top,literal,exclude){path}" for path in left_out]
        # A pathspec that only excludes needs something to exclude from.
        wanted = self.paths or ((":(top)",) if without else ())
        # To see what is checked out in a submodule, git would go into it.
        submodules = f"--ignore-submodules={'all' if self._sees_files else 'none'}"
        return self.repository.git.run("diff", *SAFE, submodules, *options, *self.sides, "--", *wanted, *without)


def decode_text(text: bytes) -> str:
    """Return git's output as text that a reply can carry."""
    return text.decode(errors="replace")


def _parse(listed: bytes) -> Iterator[Difference]:
    """Yield the changes of the output of ``--raw --numstat -z``: first all records, then all numbers in their order."""
    tokens = iter([os.fsdecode(token) for token in listed.split(b"\0")[:-1]])
    changes: list[Difference] = []
    numbers: list[str] = []
    unmerged: set[str] = set()
    for token in tokens:
        if not token.startswith(":"):
            numbers = [token, *tokens]
            break
        status, path, old = record(token, tokens)
        if path in unmerged:  # git compares it once more with our side, and has no part of the diff for that
            continue
        unmerged |= {path} if status == "conflict" else set()
        changes.append(Difference(path, status, old))
    counts = _count(iter(numbers))
    for change in changes:
        change.added, change.deleted = counts.get(change.path, (None, None))
    yield from changes


def record(token: str, following: Iterator[str]) -> tuple[str, str, str | None]:
    """Return the status, the path and the old path of a record of ``--raw -z``; the paths come after it."""
    letter = token.rpartition(" ")[2][:1]
    first = next(following)
    path, old = (next(following), first) if letter in ("R", "C") else (first, None)
    return STATUSES.get(letter, letter), path, old


def _count(tokens: Iterator[str]) -> dict[str, tuple[int | None, int | None]]:
    counts: dict[str, tuple[int | None, int | None]] = {}
    for token in tokens:
        added, deleted, path = token.split("\t", 2)
        if not path:  # of a rename both paths follow
            _, path = next(tokens), next(tokens)
        counts[path] = number(added), number(deleted)
    return counts


def number(text: str) -> int | None:
    """Return a number of lines; git writes - for binary data."""
    return int(text) if text.isdecimal() else None


def _add_patches(changes: list[Difference], text: bytes) -> None:
    """Give each change its part of the diff; the parts come in the order of the records."""
    parts = _sections(text)
    for change in changes:
        if change.status == "conflict":
            continue
        # What was a link and is a file, or the other way round, has two parts.
        change.patch = next(parts, "") + (next(parts, "") if change.status == "type" else "")


def _sections(text: bytes) -> Iterator[str]:
    """Yield the parts of a diff, one by one: to take a long one apart at once would hold the interpreter."""
    at = 0
    while at < len(text):
        end = text.find(SECTION, at) + 1 or len(text)
        if text.startswith(b"diff --git ", at):
            yield decode_text(text[at:end])
        at = end
