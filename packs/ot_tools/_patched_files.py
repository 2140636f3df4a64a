"""What a unified diff makes of the files that it names; nothing is written here."""

from __future__ import annotations

import posixpath

from ot.files.path_guard import PathGuard
from ot_tools._text_changes import BYTES_AT_ONCE, LINE_COST, MAX_LINES, Change, TextFile, require_new
from ot_tools._tree_walk import WalkDeadline
from ot_tools._unified_diff import FileDiff, parse_diff


def patch_files(
    guard: PathGuard, diff: str, path: str, max_bytes: int, deadline: WalkDeadline, into: str
) -> tuple[list[Change], dict[str, FileDiff]]:
    """Return the changes of *diff*, whose paths start at the directory *path*, and what it says of each file.

    Raises:
        ValueError: It does not fit the files; which hunk, and why.
        OSError: A file may not be changed, or does not exist, or exists already.
    """
    if len(diff) > max_bytes:
        raise ValueError(f"the diff has {len(diff):,} characters, more than {max_bytes:,} (tools.file.max_bytes)")
    lines = diff.count("\n")
    if lines > MAX_LINES:
        raise ValueError(f"the diff has {lines:,} lines, more than {MAX_LINES:,}: apply it in parts")
    deadline.spend(len(diff) / BYTES_AT_ONCE + 2 * lines * LINE_COST)
    changes, said = list[Change](), dict[str, FileDiff]()
    for file in parse_diff(diff):
        at = posixpath.normpath(posixpath.join(path, file.path))
        if at in said:
            raise ValueError(f"the diff names {at!r} twice: put its hunks together")
        said[at] = file
        if file.new:
            require_new(guard, at)
            before = TextFile(at, "", None)
        else:
            before = TextFile.read(guard, at, max_bytes, deadline.spend)
        fitting = file.without_returns() if before.crlf else file
        changes.append(before.change_to(fitting.apply(before.text, deadline), max_bytes, into))
    return changes, said
