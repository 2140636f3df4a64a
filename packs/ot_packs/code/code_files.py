"""The source files below a path, as the server lets them be read."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from code_languages import EXTENSIONS, LANGUAGES, grammar_of
from open_tree import OpenTree
from ripgrep_run import Ripgrep, SearchLimits, file_options

import ot_sdk


@dataclass(frozen=True)
class SourceFile:
    """A file with its text, and the grammar that reads it."""

    path: str
    grammar: str
    text: str


@dataclass(frozen=True)
class CodeSources:
    """What one call looks at: one file, or those of a directory that .gitignore does not leave out."""

    files: Iterator[SourceFile]
    single: bool


@contextmanager
def sources(
    path: str, language: str | None, glob: str | list[str] | None, limits: SearchLimits
) -> Generator[CodeSources]:
    """Give the files at *path*, in the order of their paths, each read when it is its turn."""
    try:
        opened = ot_sdk.open_directory(path)
    except NotADirectoryError:
        yield CodeSources(iter([_read_named_file(path, language, limits)]), single=True)
        return
    with opened as directory, OpenTree(directory, path) as tree:
        yield CodeSources(_below(tree, language, glob, limits), single=False)


def _below(
    tree: OpenTree, language: str | None, glob: str | list[str] | None, limits: SearchLimits
) -> Iterator[SourceFile]:
    extensions = EXTENSIONS[language] if language else tuple(LANGUAGES)
    # A type, not a glob: a glob would also find the ignored files that it names.
    types = [f"--type-add=sources:*.{extension}" for extension in extensions]
    options = ["--files", "--null", *types, "--type=sources", *file_options(glob)]
    for relative in Ripgrep(limits).relative_paths(options, tree):
        extension = _extension(relative)
        if extension not in extensions:
            continue
        with tree.open(relative) as descriptor:
            text = None if descriptor is None else _text(descriptor, limits.max_bytes)
        if text is not None:
            yield SourceFile(tree.name_of(relative), grammar_of(extension), text)


def _read_named_file(path: str, language: str | None, limits: SearchLimits) -> SourceFile:
    with ot_sdk.open_file(path) as file:
        text = _text(file.fileno(), limits.max_bytes)
    if text is None:
        most = f"{limits.max_bytes:,} bytes (tools.{limits.pack}.max_bytes)"
        raise ValueError(f"{path!r} cannot be parsed: it is not UTF-8 text of at most {most}")
    extension = _extension(path)
    if extension in LANGUAGES and language in (None, LANGUAGES[extension]):
        return SourceFile(path, grammar_of(extension), text)
    if language is None:
        raise ValueError(f"{path!r}: its language cannot be told from its name: give language=")
    return SourceFile(path, language, text)


def _extension(path: str) -> str:
    return PurePosixPath(path).suffix[1:].lower()


def _text(descriptor: int, max_bytes: int) -> str | None:
    """Return the text of an open file; None if it is too large, or not text."""
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
