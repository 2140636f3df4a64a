"""Read, write, list, search, copy, move and delete files inside the allowed directories."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "file"

__all__ = ["copy", "delete", "glob", "info", "list", "make_directory", "move", "read", "search", "write"]
__ot_destructive__ = ["delete", "move"]
__ot_read_only__ = ["glob", "info", "list", "read", "search"]

from builtins import list as List  # this module's own list() takes the name
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from typing import NotRequired, TypedDict, overload

from pydantic import BaseModel, ConfigDict, Field

from ot.execution.tool_context import current_tool_context
from ot.files.path_guard import PathGuard
from ot_tools import _tree_changes
from ot_tools._glob_pattern import GlobPattern
from ot_tools._text_pages import Page, read_page, text_to_search
from ot_tools._text_search import Hit, compile_pattern, find_lines
from ot_tools._tree_walk import MAX_DEPTH, FoundEntry, WalkDeadline, matching, walk

MAX_ENTRIES = 10_000
MAX_LIMIT = 100_000
MAX_CONTEXT = 20


class Config(BaseModel):
    """The settings ``tools.file``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_bytes: int = Field(default=10 << 20, ge=1, description="Bytes of text that one read or write may hold")
    search_seconds: float = Field(
        default=10.0, gt=0, le=3600, allow_inf_nan=False, strict=False, description="Time for one list, glob or search"
    )


class Listed(TypedDict):
    """One entry of a listing."""

    path: str
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
    """Return the text of a file, or some of its lines; with encoding=None its bytes.

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
    _check_number("offset", offset, 1)
    if limit is not None:
        _check_number("limit", limit, 1)
    if encoding is None:
        return _read_bytes(path, offset - 1, limit)
    page = Page(offset, limit, encoding, _config().max_bytes)
    with _guard().open_for_reading(path) as stream, _about(path):
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
    data = _encoded(path, content)
    guard = _guard()
    created = not _exists(guard, path)
    with guard.open_for_appending(path) if append else guard.open_for_writing(path) as stream:
        stream.write(data)
    return {"path": path, "bytes": len(data), "created": created}


def list(*, path: str = ".", depth: int = 1, hidden: bool = False) -> List[Listed]:
    """List what a directory holds.

    Args:
        path: The directory, relative to the working directory or absolute.
        depth: How many levels to list: 1 is the directory itself, 2 also what its directories hold.
        hidden: Also list names that begin with a dot.

    Returns:
        A path, a type ('file', 'directory', 'link' or 'other') and a size in bytes for each entry, by name.

    Example:
        file.list(path="src", depth=2)
    """
    _check_number("depth", depth, 1, MAX_DEPTH)

    def below(levels: int, name: str) -> int | None:
        return levels - 1 if hidden or not name.startswith(".") else None

    with _guard().open_directory(path) as top:
        entries = (_listed(found) for found, _ in walk(top, path, depth, below, _deadline()))
        listed = [*islice(entries, MAX_ENTRIES + 1)]
    if len(listed) > MAX_ENTRIES:
        raise ValueError(f"{path!r} holds more than {MAX_ENTRIES:,} entries: list less, or use file.glob")
    return listed


def glob(*, pattern: str, path: str = ".", limit: int = 1000) -> List[str]:
    """Find files by a pattern of their path.

    Directories are not returned. Files below .git are left out unless the pattern names .git.

    Args:
        pattern: What paths below the directory must look like, with *, ?, [a-z], {a,b} and ** for any directories.
        path: The directory to start at.
        limit: The most paths to return; there may be more when as many come back.

    Returns:
        Paths that the other tools of this pack take, directory by directory and by name.

    Example:
        file.glob(pattern="src/**/*.{py,pyi}")
    """
    _check_number("limit", limit, 1, MAX_LIMIT)
    guard, wanted = _guard(), GlobPattern(pattern)
    with guard.open_directory(path) as top:
        files = (found.path for found in matching(top, path, wanted, _deadline()) if _is_file(guard, found))
        return [*islice(files, limit)]


def search(
    *, pattern: str, path: str = ".", glob: str = "**/*", ignore_case: bool = False, context: int = 0, limit: int = 200
) -> List[Match]:
    """Find lines by a regular expression.

    Binary files and files larger than the setting tools.file.max_bytes are left out.

    Args:
        pattern: A regular expression in RE2 syntax, which lacks look-around and backreferences.
        path: The directory to start at, or one file.
        glob: Which files below the directory to search, as for file.glob.
        ignore_case: Take upper and lower case for the same.
        context: How many lines before and after each match to return with it.
        limit: The most matches to return; there may be more when as many come back.

    Returns:
        The path, line number and text of each line that matches, and lists before and after with context.
        Of a long line 500 characters around the match are returned.

    Example:
        file.search(pattern="TODO|FIXME", glob="**/*.py")
    """
    _check_number("context", context, 0, MAX_CONTEXT)
    _check_number("limit", limit, 1, MAX_LIMIT)
    expression, files, deadline = compile_pattern(pattern, ignore_case=ignore_case), GlobPattern(glob), _deadline()
    matches: List[Match] = []
    for at, data in _texts(path, files, deadline):
        for hit in islice(find_lines(data, expression, context=context), limit - len(matches)):
            deadline.check()
            matches.append(_match(at, hit, with_neighbours=context > 0))
        if len(matches) == limit:
            break
    return matches


def info(*, path: str) -> Info:
    """Tell what is at a path.

    Args:
        path: The file or directory, relative to the working directory or absolute.

    Returns:
        The path, its type ('file', 'directory' or 'other'), its size in bytes and when it was modified, in UTC.

    Example:
        file.info(path="notes.txt")
    """
    found = _guard().status(path)
    modified = datetime.fromtimestamp(found.modified, UTC).isoformat(timespec="seconds")
    return {"path": path, "type": found.type, "size": found.size, "modified": modified}


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
    """Delete a file, a link or a directory, for good.

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
    return WalkDeadline.after(_config().search_seconds)


def _check_number(name: str, value: int, least: int, most: int | None = None) -> None:
    if type(value) is not int:  # programs are not type-checked, and True would pass for 1
        raise TypeError(f"{name} must be an int, got {value!r:.100}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {f'{least} to {most:,}' if most else f'>= {least}'}, got {value}")


def _read_bytes(path: str, offset: int, limit: int | None) -> bytes:
    most = _config().max_bytes
    with _guard().open_for_reading(path) as stream:
        stream.seek(offset)
        data = stream.read(most + 1 if limit is None else min(limit, most + 1))
    if len(data) > most:
        raise ValueError(
            f"{path!r} holds more than {most:,} bytes (tools.file.max_bytes): read it in parts with limit="
        )
    return data


def _encoded(path: str, content: str | bytes) -> bytes:
    if not isinstance(content, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        kind = type(content).__name__
        raise TypeError(f"content must be text or bytes, not {kind}: use json.dumps() or str() first")
    max_bytes = _config().max_bytes
    try:
        data = content if isinstance(content, bytes) else content.encode()
    except UnicodeEncodeError:
        raise ValueError(f"content for {path!r} cannot be written: it holds half a character (a surrogate)") from None
    if len(data) > max_bytes:
        limit = f"more than {max_bytes:,} (tools.file.max_bytes)"
        raise ValueError(f"content for {path!r} has {len(data):,} bytes, {limit}: append it in parts")
    return data


def _exists(guard: PathGuard, path: str) -> bool:
    try:
        guard.status(path)
    except FileNotFoundError:
        return False
    return True


def _is_file(guard: PathGuard, found: FoundEntry) -> bool:
    """Return whether it is a file, or a link to one that a program may read."""
    if found.entry.type == "link":
        with suppress(OSError, ValueError):
            return guard.status(found.path).type == "file"
    return found.entry.type == "file"


def _listed(found: FoundEntry) -> Listed:
    size = 0
    if found.entry.type == "file":
        with suppress(OSError):  # it may be gone meanwhile
            size = found.directory.status(found.entry.name).size
    return {"path": found.path, "type": found.entry.type, "size": size}


def _match(path: str, hit: Hit, *, with_neighbours: bool) -> Match:
    if with_neighbours:
        return {"path": path, "line": hit.line, "text": hit.text, "before": [*hit.before], "after": [*hit.after]}
    return {"path": path, "line": hit.line, "text": hit.text}


def _texts(path: str, pattern: GlobPattern, deadline: WalkDeadline) -> Iterator[tuple[str, bytes]]:
    """Yield the text files to search, with their content; one file that was asked for by name must be text."""
    guard, max_bytes = _guard(), _config().max_bytes
    if guard.status(path).type == "file":
        with guard.open_for_reading(path) as stream, _about(path):
            data = text_to_search(stream, max_bytes)
        yield path, data
        return
    with guard.open_directory(path) as top:
        for found in matching(top, path, pattern, deadline):
            if found.entry.type == "file" and (data := _text_of(found, max_bytes)):
                yield found.path, data


def _text_of(found: FoundEntry, max_bytes: int) -> bytes:
    try:
        with found.directory.open_file(found.entry.name) as stream:
            return text_to_search(stream, max_bytes)
    except (OSError, ValueError):
        return b""  # closed to us, gone meanwhile, binary or too large


@contextmanager
def _about(path: str) -> Generator[None]:
    """Put the path before what is wrong with the content of its file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path!r} {error}") from None
