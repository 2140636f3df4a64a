"""Read, write, edit, patch, list, search, copy, move and delete files in the allowed directories."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "file"

__all__ = [
    "append",
    "copy",
    "delete",
    "edit",
    "exists",
    "glob",
    "info",
    "list",
    "make_directory",
    "move",
    "patch",
    "read",
    "search",
    "tree",
    "write",
]
__ot_destructive__ = ["delete", "move"]
__ot_read_only__ = ["exists", "glob", "info", "list", "read", "search", "tree"]
__ot_needs__ = {
    "append": ["file.write"],
    "copy": ["file.write"],
    "edit": ["file.write"],
    "make_directory": ["file.write"],
    "move": ["file.write"],
    "patch": ["file.write"],
    "search": ["file.read"],
}
__ot_heavy__ = ["glob", "list", "search", "tree"]
__ot_planned__ = {"copy": "", "delete": "", "edit": "plan_edit", "move": "", "patch": "plan_patch"}

from builtins import list as List  # this module's own list() takes the name
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import NotRequired, TypedDict, overload

from pydantic import BaseModel, ConfigDict, Field

from ot.execution.tool_context import current_tool_context
from ot.files.path_guard import PathGuard
from ot.files.run_writes import current_writes
from ot_sdk.numbers import check_number, whole
from ot_tools import _tree_changes
from ot_tools._file_contents import about, encode, is_file, is_there, read_bytes, texts
from ot_tools._glob_pattern import GlobPattern
from ot_tools._ignore_rules import IgnoreRules
from ot_tools._patched_files import patch_files
from ot_tools._text_changes import PLACE_COST, Change, Replacement, TextFile, change_files
from ot_tools._text_pages import Page, read_page
from ot_tools._text_search import Hit, compile_pattern, find_lines
from ot_tools._tree_overview import Overview, TreeNode
from ot_tools._tree_walk import MAX_DEPTH, FoundEntry, Walk, WalkDeadline, matching

MAX_ENTRIES = 10_000
MAX_LIMIT = 100_000
MAX_CONTEXT = 20
MATCH_COST = 10


class Config(BaseModel):
    """The settings ``tools.file``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_bytes: int = Field(default=10 << 20, ge=1, description="Bytes of text that one read or write may hold")
    search_seconds: float = Field(
        default=10.0, gt=0, le=3600, strict=False, description="Time for one list, glob or search"
    )


class Listed(TypedDict):
    """One entry of a listing."""

    path: str
    name: str
    type: str
    size: int


class Info(Listed):
    """What is known of one path."""

    modified: str


class Written(TypedDict):
    """What a write did."""

    path: str
    bytes: int
    created: bool


class Made(TypedDict):
    """What a call that makes a directory did."""

    path: str
    created: bool


class Changed(TypedDict):
    """What was copied or moved, by the path that it has now."""

    path: str
    files: int


class Deleted(TypedDict):
    """What was deleted; ``count`` counts files, links and directories."""

    path: str
    type: str
    count: int


class TextEdited(TypedDict):
    """What an edit did, or would do, as a unified diff."""

    path: str
    replaced: int
    diff: str


class Patched(TypedDict):
    """What a diff did, or would do, to one file; the numbers count lines."""

    path: str
    created: bool
    added: int
    deleted: int


class EditPlan(TypedDict):
    """What an edit would change."""

    change: Change
    replaced: int
    diff: str


class PatchPlan(TypedDict):
    """What a diff would change."""

    changes: List[Change]
    patched: List[Patched]


class Branch(TypedDict):
    """A file, or a directory with the size and number of all files below it, and as deep as asked what it holds."""

    name: str
    type: str
    size: int
    files: int
    entries: NotRequired[List[Branch]]


class Match(TypedDict):
    """A line that matches; its neighbours when context was asked for."""

    path: str
    line: int
    text: str
    before: NotRequired[List[str]]
    after: NotRequired[List[str]]


@overload
def read(*, path: str, offset: int = 1, limit: int | None = None, encoding: str = "utf-8") -> str: ...
@overload
def read(*, path: str, offset: int = 1, limit: int | None = None, encoding: None) -> bytes: ...
def read(*, path: str, offset: int = 1, limit: int | None = None, encoding: str | None = "utf-8") -> str | bytes:
    """Read the text of a file, or some of its lines; with encoding=None its bytes.

    Large files are read in pages: limit=2000 with offset=1, then offset=2001, until the text is empty.

    Args:
        path: The file, relative to the working directory or absolute.
        offset: The first line to return, from 1; with encoding=None the first byte.
        limit: How many lines, or bytes, to return; all when left out.
        encoding: How the bytes are to be read, such as 'utf-8', 'utf-16' or 'latin-1'; None returns them as they are.

    Returns:
        The text as it is in the file, line ends included; empty after the last line.

    Example:
        file.read(path="notes.txt", offset=1, limit=100)
    """
    check_number("offset", offset, 1)
    if limit is not None:
        check_number("limit", limit, 1)
    if encoding is None:
        return read_bytes(_guard(), path, offset - 1, limit, _config().max_bytes)
    page = Page(offset, limit, encoding, _config().max_bytes)
    with _guard().open_for_reading(path) as stream, about(path):
        return read_page(stream, page)


def write(*, path: str, content: str | bytes, append: bool = False) -> Written:
    """Write text or bytes to a file, whole or not at all; missing directories are created.

    Args:
        path: The file, relative to the working directory or absolute.
        content: The text, written as UTF-8 and without any change, or bytes.
        append: Add to the end of the file instead of replacing it.

    Returns:
        The path, how many bytes were written, and whether the file is new.

    Example:
        file.write(path="out/report.md", content="# Report")
    """
    data = encode(path, content, _config().max_bytes)
    guard = _guard()
    created = not is_there(guard, path)
    current_writes().spend(len(data))
    with guard.open_for_appending(path) if append else guard.open_for_writing(path) as stream:
        stream.write(data)
    return {"path": path, "bytes": len(data), "created": created}


def append(*, path: str, content: str | bytes) -> Written:
    """Add text or bytes to the end of a file; one that is missing is created.

    Args:
        path: The file, relative to the working directory or absolute.
        content: The text, with the line breaks that it is to have, or bytes.

    Returns:
        As file.write.

    Example:
        file.append(path="log.txt", content="done\\n")
    """
    return write(path=path, content=content, append=True)


def edit(
    *, path: str, old: str, new: str, count: int = 1, replace_all: bool = False, dry_run: bool = False
) -> TextEdited:
    """Replace text in a file exactly; with dry_run=True only show the change as a unified diff.

    Args:
        path: The file, UTF-8 text, relative to the working directory or absolute.
        old: The text to replace, as it stands in the file, with enough around it to be there only once.
        new: The text to put in its place.
        count: How often the old text must be there; otherwise nothing is changed.
        replace_all: Replace it however often it is there.
        dry_run: Change nothing.

    Returns:
        The path, how many places were replaced, and the change as a unified diff.

    Example:
        file.edit(path="notes.txt", old="milk", new="bread", dry_run=True)
    """
    check_number("count", count, 1)
    plan = current_tool_context().plan or plan_edit(path=path, old=old, new=new, count=count, replace_all=replace_all)
    if not dry_run:
        change_files(_guard(), [plan["change"]])
    return {"path": path, "replaced": plan["replaced"], "diff": plan["diff"]}


def plan_edit(
    *, path: str, old: str, new: str, count: int = 1, replace_all: bool = False, dry_run: bool = False, into: str = ""
) -> EditPlan:
    """Plan an edit without making it; a helper puts the new bytes into the directory *into*."""
    most, spend = _config().max_bytes, _deadline().spend
    before = TextFile.read(_guard(), path, most, spend)
    found = Replacement.find(before, old, new, None if replace_all else count)
    spend(len(found.places) * PLACE_COST)
    change = before.change_to(found.result(most), most, into)
    return {"change": change, "replaced": len(found.places), "diff": found.unified_diff(path)}


def patch(*, diff: str, path: str = ".", dry_run: bool = False) -> List[Patched]:
    """Apply a unified diff to one or more files, all of it or nothing; with dry_run=True only check that it fits.

    The lines around each change must be in the file as the diff has them; line numbers may be off.
    A diff that deletes or renames files is refused: use file.delete and file.move.

    Args:
        diff: The diff, as git and diff -u write it.
        path: The directory that the paths in the diff start at.
        dry_run: Change nothing.

    Returns:
        The path of each file, whether it is new, and how many lines are added and deleted.

    Example:
        file.patch(diff="--- a/notes.txt\\n+++ b/notes.txt\\n@@ -1 +1 @@\\n-buy milk\\n+buy bread\\n", dry_run=True)
    """
    plan = current_tool_context().plan or plan_patch(diff=diff, path=path)
    if not dry_run:
        change_files(_guard(), plan["changes"])
    return plan["patched"]


def plan_patch(*, diff: str, path: str = ".", dry_run: bool = False, into: str = "") -> PatchPlan:
    """Plan a patch without making it; a helper puts the new bytes into the directory *into*."""
    changes, said = patch_files(_guard(), diff, path, _config().max_bytes, _deadline(), into)
    patched: List[Patched] = [
        {"path": at, "created": file.new, "added": file.added, "deleted": file.deleted} for at, file in said.items()
    ]
    return {"changes": changes, "patched": patched}


def tree(*, path: str = ".", depth: int = 3, hidden: bool = False, ignored: bool = False) -> Branch:
    """Show a directory as a tree, with the number and size of all files below each directory.

    Args:
        path: The directory, relative to the working directory or absolute.
        depth: How many levels to show; what lies deeper is counted all the same.
        hidden: Also show names that begin with a dot.
        ignored: Also show what .gitignore files leave out.

    Returns:
        The name, type, size in bytes, number of files and, of a directory, the entries, which are of the same form.

    Example:
        file.tree(path="src", depth=2)
    """
    check_number("depth", depth, 1, MAX_DEPTH)
    deadline = _deadline()
    return _branch(Overview(depth, hidden, deadline).of(_guard(), path, _rules(path, deadline, ignored=ignored)))


def list(*, path: str = ".", depth: int = 1, hidden: bool = False, ignored: bool = True) -> List[Listed]:
    """List the files and folders in a directory, with their sizes.

    Args:
        path: The directory, relative to the working directory or absolute.
        depth: How many levels to list: 1 is the directory itself, 2 also what its directories hold.
        hidden: Also list names that begin with a dot.
        ignored: Also list what .gitignore files leave out.

    Returns:
        Path, name, type ('file', 'directory', 'link' or 'other') and size in bytes of each entry, ordered by name.

    Example:
        file.list(path="src", depth=2)
    """
    check_number("depth", depth, 1, MAX_DEPTH)

    def below(levels: int, name: str) -> int | None:
        return levels - 1 if hidden or not name.startswith(".") else None

    deadline = _deadline()
    walk, rules = Walk(below, deadline), _rules(path, deadline, ignored=ignored)
    with _guard().open_directory(path) as top:
        entries = (_describe(found) for found, _ in walk.below(top, path, depth, rules))
        listed = [*islice(entries, MAX_ENTRIES + 1)]
    if len(listed) > MAX_ENTRIES:
        raise ValueError(f"{path!r} holds more than {MAX_ENTRIES:,} entries: list less, or use file.glob")
    return listed


def glob(*, pattern: str, path: str = ".", limit: int = 10_000, ignored: bool = False) -> List[str]:
    """Find files by a pattern of their path, such as **/*.py.

    Directories are not returned. What lies below .git, and what .gitignore files leave out, is found only where
    the pattern or the path names it, as in 'dist/*.js'.

    Args:
        pattern: What paths below the directory must look like, with *, ?, [a-z], {a,b} and ** for any directories.
        path: The directory to start at.
        limit: The most paths to return; there may be more when as many come back.
        ignored: Also find what .gitignore files leave out.

    Returns:
        Paths that the other tools of this pack take, directory by directory and by name.

    Example:
        file.glob(pattern="src/**/*.{py,pyi}")
    """
    check_number("limit", limit, 1)
    guard, wanted, deadline = _guard(), GlobPattern(pattern), _deadline()
    rules = _rules(path, deadline, ignored=ignored)
    with guard.open_directory(path) as top:
        files = (found.path for found in matching(top, path, wanted, deadline, rules) if is_file(guard, found))
        return whole([*islice(files, min(limit, MAX_LIMIT))], limit, MAX_LIMIT)


def search(
    *,
    pattern: str,
    path: str = ".",
    glob: str = "**/*",
    ignore_case: bool = False,
    context: int = 0,
    limit: int = 10_000,
    ignored: bool = False,
) -> List[Match]:
    """Find lines in files by a regular expression, as grep does.

    Binary files and files larger than the setting tools.file.max_bytes are left out.

    Args:
        pattern: A regular expression in RE2 syntax, which lacks look-around and backreferences.
        path: The directory to start at, or one file.
        glob: Which files below the directory to search, as for file.glob.
        ignore_case: Take upper and lower case for the same.
        context: How many lines before and after each match to return with it.
        limit: The most matches to return; there may be more when as many come back.
        ignored: Also search what .gitignore files leave out, as for file.glob.

    Returns:
        The path, line number and text of each line that matches, and lists before and after with context.
        Of a long line 500 characters around the match are returned.

    Example:
        file.search(pattern="TODO|FIXME", glob="**/*.py")
    """
    check_number("context", context, 0, MAX_CONTEXT)
    check_number("limit", limit, 1)
    deadline, files = _deadline(), GlobPattern(glob)
    expression = compile_pattern(pattern, ignore_case=ignore_case, small=deadline.allowance is not None)
    matches: List[Match] = []
    rules, most = _rules(path, deadline, ignored=ignored), _config().max_bytes
    for at, data in texts(_guard(), path, files, deadline, rules, most):
        for hit in islice(find_lines(data, expression, context=context), min(limit, MAX_LIMIT) - len(matches)):
            deadline.check()
            deadline.spend(MATCH_COST)
            matches.append(_match(at, hit, with_neighbours=context > 0))
        if len(matches) == min(limit, MAX_LIMIT):
            break
    return whole(matches, limit, MAX_LIMIT)


def exists(*, path: str) -> bool:
    """Tell whether there is a file or directory at a path.

    Args:
        path: Relative to the working directory or absolute.

    Returns:
        True or False; a path that programs may not read raises PermissionError.

    Example:
        file.exists(path="notes.txt")
    """
    return is_there(_guard(), path)


def info(*, path: str) -> Info:
    """Tell what is at a path: file or directory, its size, and when it was last changed.

    Args:
        path: The file or directory, relative to the working directory or absolute.

    Returns:
        Path, name, type ('file', 'directory' or 'other'), size in bytes, and when it was modified, in UTC.

    Example:
        file.info(path="notes.txt")
    """
    found = _guard().status(path)
    modified = datetime.fromtimestamp(found.modified, UTC).isoformat(timespec="seconds")
    return {
        "path": path,
        "name": _guard().absolute(path).name,
        "type": found.type,
        "size": found.size,
        "modified": modified,
    }


def make_directory(*, path: str) -> Made:
    """Make a directory, and those above it that are missing; one that exists already is left as it is.

    Args:
        path: The directory, relative to the working directory or absolute.

    Returns:
        The path, and whether the directory is new.

    Example:
        file.make_directory(path="out/charts")
    """
    return {"path": path, "created": _tree_changes.make_directory(_guard(), path)}


def copy(*, source: str, target: str, overwrite: bool = False) -> Changed:
    """Copy a file, or a directory with all that it holds; missing directories are created.

    Args:
        source: The file or directory, relative to the working directory or absolute.
        target: The path of the copy itself, not of the directory to put it in.
        overwrite: Replace files that exist already.

    Returns:
        The path of the copy, and how many files were copied.

    Example:
        file.copy(source="notes.txt", target="backup/notes.txt")
    """
    return {
        "path": target,
        "files": _tree_changes.copy_tree(_guard(), source, target, _deadline(), overwrite=overwrite),
    }


def move(*, source: str, target: str, overwrite: bool = False) -> Changed:
    """Move a file, or a directory with all that it holds, or give it another name; missing directories are created.

    Args:
        source: The file or directory, relative to the working directory or absolute.
        target: The new path itself, not the directory to put it in.
        overwrite: Replace files that exist already.

    Returns:
        The new path, and how many files were moved.

    Example:
        file.move(source="draft.md", target="done/report.md")
    """
    return {
        "path": target,
        "files": _tree_changes.move_tree(_guard(), source, target, _deadline(), overwrite=overwrite),
    }


def delete(*, path: str, recursive: bool = False) -> Deleted:
    """Delete a file, a link or a directory; ot.undo(run=) can bring back what was not too large to be kept.

    Args:
        path: What to delete, relative to the working directory or absolute; a link is deleted, not what it leads to.
        recursive: Delete a directory with all that it holds; otherwise it must be empty.

    Returns:
        The path, what it was, and how many files, links and directories were deleted.

    Example:
        file.delete(path="out/old.txt")
    """
    kind, count = _tree_changes.delete_tree(_guard(), path, _deadline(), recursive=recursive)
    return {"path": path, "type": kind, "count": count}


def _guard() -> PathGuard:
    return current_tool_context().guard


def _config() -> Config:
    return Config.model_validate(dict(current_tool_context().settings))


def _deadline() -> WalkDeadline:
    return WalkDeadline.after(_config().search_seconds, allowance=current_tool_context().allowance)


def _rules(path: str, deadline: WalkDeadline, *, ignored: bool) -> IgnoreRules | None:
    return None if ignored else IgnoreRules.around(_guard(), path, deadline.spend)


def _branch(node: TreeNode) -> Branch:
    branch: Branch = {"name": node.name, "type": node.type, "size": node.size, "files": node.files}
    if node.entries is not None:
        branch["entries"] = [*map(_branch, node.entries)]
    return branch


def _describe(found: FoundEntry) -> Listed:
    size = 0
    if found.entry.type == "file":
        with suppress(OSError):  # it may be gone meanwhile
            size = found.directory.status(found.entry.name).size
    return {"path": found.path, "name": found.entry.name, "type": found.entry.type, "size": size}


def _match(path: str, hit: Hit, *, with_neighbours: bool) -> Match:
    if with_neighbours:
        return {"path": path, "line": hit.line, "text": hit.text, "before": [*hit.before], "after": [*hit.after]}
    return {"path": path, "line": hit.line, "text": hit.text}
