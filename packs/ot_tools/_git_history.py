"""Reads commits, the authors of lines, branches and the state of the work tree from what git prints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, timezone

from ot_tools._git_changes import SAFE, Difference, decode_text, number, record
from ot_tools._git_repository import Repository, as_text

FIELDS = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%b"
_AGO = re.compile(r"(\d{1,4}) (minute|hour|day|week|month|year)s?(?: ago)?")
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass
class LoggedCommit:
    """One commit; *files* when they were asked for."""

    id: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str
    body: str
    files: list[Difference] = field(default_factory=list[Difference])


@dataclass(frozen=True)
class BlamedLine:
    """A line of a file, and the commit that wrote it."""

    line: int
    text: str
    commit: str
    author: str
    email: str
    date: str
    subject: str


def point_in_time(name: str, text: str, *, end: bool = False) -> str:
    """Return a date that a program gives as git takes it without guessing; a day alone is taken whole.

    Raises:
        ValueError: It is neither a date nor a time ago.
    """
    if ago := _AGO.fullmatch(text.strip()):
        count, unit = int(ago[1]), ago[2]
        past = timedelta(days=count * _DAYS[unit]) if unit in _DAYS else timedelta(**{f"{unit}s": count})
        return (datetime.now(UTC) - past).isoformat(timespec="seconds")
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{name} must be like '2026-01-31', '2026-01-31T12:00' or '2 weeks ago', not {text!r:.100}"
        ) from None
    if len(text.strip()) <= len("2026-01-31"):
        when = datetime.combine(when, time.max if end else time.min)
    return when.astimezone().isoformat(timespec="seconds")


def commits(repository: Repository, *args: str) -> list[LoggedCommit]:
    """Return the commits that ``git log`` lists with these arguments."""
    told = repository.git.run("log", "-z", "--no-show-signature", f"--format=tformat:{FIELDS}", *args)
    fields = decode_text(told).split("\0")[:-1]
    width = FIELDS.count("%x00") + 1
    rows = (fields[at : at + width] for at in range(0, len(fields), width))
    return [
        LoggedCommit(id, parents.split(), author, email, date, subject, body.rstrip("\n"))
        for id, parents, author, email, date, subject, body in rows
    ]


def add_files(repository: Repository, found: Sequence[LoggedCommit], paths: Sequence[str]) -> None:
    """Give each commit the files that it changed against its parent; a merge has none."""
    by_id = {commit.id: commit for commit in found}
    names = "".join(f"{id}\n" for id in by_id).encode()
    options = (
        "--stdin",
        "-r",
        "-z",
        "--root",
        "--raw",
        "--numstat",
        "--find-renames",
        "--ignore-submodules=none",
        *SAFE,
    )
    told = repository.git.run("diff-tree", *options, "--", *paths, stdin=names)
    tokens = map(os.fsdecode, told.split(b"\0")[:-1])
    files, statuses = list[Difference](), dict[str, str]()
    for token in tokens:
        if token in by_id:
            files, statuses = by_id[token].files, {}
            continue
        if token.startswith(":"):
            status, path, _ = record(token, tokens)
            statuses[path] = status
            continue
        added, deleted, path = token.split("\t", 2)
        old = None
        if not path:
            old, path = next(tokens), next(tokens)
        if all(map(repository.may_show, filter(None, (old, path)))):
            old = old and repository.show_path(old)
            change = Difference(repository.show_path(path), statuses[path], old, number(added), number(deleted))
            change.name = as_text(path)
            files.append(change)


def file_at(repository: Repository, commit: str, path: str) -> bytes | None:
    """Return the content of the file *path*, as git names it, in a commit; None if there is none."""
    found = repository.git.run("ls-tree", "-z", commit, "--", f":(top,literal){path}").split(b"\t", 1)[0].split()
    # A directory, a submodule and a link have other modes.
    if not found or found[0] not in (b"100644", b"100755"):
        return None
    return repository.git.run("cat-file", "blob", found[2].decode())


def blame(repository: Repository, commit: str, path: str, start: int, limit: int) -> Iterator[BlamedLine]:
    """Yield the lines of the file *path*, as git names it, in a commit, each with the commit that it comes from."""
    told = repository.git.run("blame", "--line-porcelain", "-L", f"{start},+{limit}", commit, "--", path)
    known: dict[str, str] = {}
    id, at = "", 0
    for row in told.split(b"\n"):
        if row.startswith(b"\t"):
            zone = known.get("author-tz", "+0000")
            yield BlamedLine(
                at,
                decode_text(row[1:]),
                id,
                known.get("author", ""),
                known.get("author-mail", "").strip("<>"),
                _date(known.get("author-time", "0"), zone),
                known.get("summary", ""),
            )
            known = {}
        elif head := re.fullmatch(rb"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?", row) if not known else None:
            id, at, known = head[1].decode(), int(head[2]), {"": ""}
        else:
            key, _, value = decode_text(row).partition(" ")
            known[key] = value


def _date(seconds: str, zone: str) -> str:
    sign = -1 if zone.startswith("-") else 1
    hours, minutes = int(zone[1:3] or 0), int(zone[3:5] or 0)
    try:
        offset = timezone(sign * timedelta(hours=hours, minutes=minutes))
        return datetime.fromtimestamp(int(seconds), offset).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()  # nothing holds a commit to a date that exists


@dataclass(frozen=True)
class StatusLine:
    """A file that is not as in the last commit; a letter of git for each side, ``.`` for none."""

    path: str
    staged: str
    unstaged: str
    old_path: str | None = None


def status_lines(
    repository: Repository, untracked: bool, paths: Sequence[str]
) -> tuple[dict[str, str], list[StatusLine]]:
    """Return git's status of the branch, and the files changed since the last commit, as git names them."""
    kind = "all" if untracked else "no"
    options = ("--porcelain=v2", "-z", "--branch", f"--untracked-files={kind}", "--ignore-submodules=all")
    told = repository.git.run("status", *options, "--", *paths)
    tokens = map(os.fsdecode, told.split(b"\0")[:-1])
    branch, lines = dict[str, str](), list[StatusLine]()
    for token in tokens:
        match token[:2]:
            case "# ":
                key, _, value = token[2:].partition(" ")
                branch[key] = value
            case "1 ":
                parts = token.split(" ", 8)
                lines.append(StatusLine(parts[8], parts[1][0], parts[1][1]))
            case "2 ":
                parts = token.split(" ", 9)
                lines.append(StatusLine(parts[9], parts[1][0], parts[1][1], next(tokens)))
            case "u ":
                lines.append(StatusLine(token.split(" ", 10)[10], "U", "U"))
            case "? ":
                lines.append(StatusLine(token[2:], ".", "?"))
            case _:
                pass
    known = {line.path for line in lines}
    lines = [*(line for line in _find_staged_submodules(repository, paths) if line.path not in known), *lines]
    return branch, [line for line in lines if repository.may_show(line.path)]


def _find_staged_submodules(repository: Repository, paths: Sequence[str]) -> Iterator[StatusLine]:
    """Yield those whose commit is staged: ``git status`` tells of them only if it may go into them."""
    options = ("--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=none", *SAFE)
    tokens = map(os.fsdecode, repository.git.run("diff", *options, "--", *paths).split(b"\0")[:-1])
    for told, path in zip(tokens, tokens, strict=True):
        if "160000" in told[1:].split()[:2]:
            yield StatusLine(path, told[-1], ".")
