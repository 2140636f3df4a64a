"""Documents: markdown with a title, a description and tags in its front matter.

They lie in folders, as ``<category>/<name>.md``; nothing outside a folder is ever touched.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, cast

import yaml
from pydantic import Field

from mcp_core import Result, ToolFailure

MAX_BYTES = 256 << 10
MAX_FRONT = 8 << 10
MAX_TITLE = 200
MAX_TAGS = 20
MAX_CATEGORIES = 200
MAX_DOCUMENTS = 1000
CODE = frozenset({".git", ".onetool"})
"""Folders in which a written file may come to run."""
NAME = r"^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$"

Name = Annotated[str, Field(pattern=NAME)]
"""Small letters, digits, - and _: no path can be made of it, on any system."""
Tag = Annotated[str, Field(min_length=1, max_length=50)]
Source = Literal["project", "user"]

_NAME = re.compile(NAME)
# A named pipe that was put in a file's place would hang for ever.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.M | re.S)


class DocumentInfo(TypedDict):
    """What a listing says of a document."""

    category: str
    name: str
    title: str
    description: str
    tags: list[str]
    source: Source


class Document(DocumentInfo):
    """A document and its text, without the front matter."""

    text: str


def read_document(category: str, name: str, source: Source, content: str) -> Document:
    """Return the document that a file's content is; front matter that cannot be read is part of the text."""
    front, text = _split(content)
    return {
        "category": category,
        "name": name,
        "title": _line(front.get("title")) or _heading(text) or name,
        "description": _line(front.get("description")),
        "tags": _tags(front.get("tags")),
        "source": source,
        "text": text,
    }


def compose(title: str, description: str, tags: Sequence[str], text: str) -> str:
    """Return the content of a document's file."""
    front = {key: value for key, value in (("title", title), ("description", description), ("tags", [*tags])) if value}
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n{text}" if front else text


def info_of(document: Document) -> DocumentInfo:
    """Return the document without its text."""
    return {key: value for key, value in document.items() if key != "text"}  # pyright: ignore[reportReturnType] - all but one of its keys


def _split(content: str) -> tuple[dict[str, Any], str]:
    found = _FRONT.match(content[: MAX_FRONT * 2])
    if not found or len(found["front"]) > MAX_FRONT:
        return {}, content
    try:
        # The loader in Python ends deep nesting with an error, the one in C with the process.
        front: Any = yaml.load(found["front"], Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, content
    return (cast("dict[str, Any]", front), content[found.end() :]) if isinstance(front, dict) else ({}, content)


def _line(value: object) -> str:
    return " ".join(value.split())[:MAX_TITLE] if isinstance(value, str) else ""


def _tags(value: Any) -> list[str]:
    return [_line(tag)[:50] for tag in value if isinstance(tag, str)][:MAX_TAGS] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - a list of any kind


def _heading(text: str) -> str:
    found = re.search(r"^# +(.+)$", text[:2000], re.M)
    return _line(found[1]) if found else ""


# ---------------------------------------------------------------- errors


class GuideError(ToolFailure):
    """Something that the caller can be told: what, of which kind, and what to do."""


def answer[T](work: Callable[[], T]) -> Result[T]:
    """Return what *work* returns, or its failure, as a result."""
    try:
        return Result.ok(work())
    except GuideError as error:
        return Result.failure(error.error, error.error_type, instruction=error.instruction)
    except OSError as error:
        # Its text alone: the paths of a machine are none of an agent's business.
        why = error.strerror or type(error).__name__
        return Result.failure(f"the documents cannot be reached: {why}", "io_error", instruction="Tell the user.")


# ---------------------------------------------------------------- folders


@dataclass(frozen=True, slots=True)
class Folder:
    """The documents below *root*; *within* is the directory that even a link at *root* may not lead out of."""

    root: Path
    source: Source
    within: Path | None = None

    def categories(self) -> list[str]:
        """Return the names of the categories."""
        return self._names(self.root, "", MAX_CATEGORIES)

    def names(self, category: str) -> list[str]:
        """Return the names of the documents of a category."""
        return self._names(self.root / category, ".md", MAX_DOCUMENTS)

    def get(self, category: str, name: str) -> Document | None:
        """Return a document, or nothing when there is none.

        Raises:
            GuideError: It is not text, or too large.
        """
        file = self._file(category, name)
        if not self._is_inside(file):
            return None
        try:
            fd = os.open(file, _READ)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        with os.fdopen(fd, "rb") as opened:
            if not os.path.isfile(opened.fileno()):  # noqa: PTH113 - the open file, not a path
                return None
            data = opened.read(MAX_BYTES + 1)
        return read_document(category, name, self.source, _text(data, category, name))

    def put(self, category: str, name: str, content: str, *, replace: bool) -> bool:
        """Write a document, whole or not at all, and return whether it is new.

        Raises:
            GuideError: It exists and must not be replaced, is too large, or may not be written.
        """
        data = content.encode()
        if len(data) > MAX_BYTES:
            raise _too_large(category, name)
        file = self._writable(category, name)
        names = self.names(category)
        if len(names) >= MAX_DOCUMENTS and name not in names:
            raise GuideError(
                f"{category} is full", "limit", f"A category holds {MAX_DOCUMENTS} documents; use another."
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        if not self._is_inside(file):
            raise _refused("its directory leads elsewhere")
        return _write(file, data, replace=replace)

    def remove(self, category: str, name: str) -> bool:
        """Remove a document and its category when that was the last; return whether there was one.

        Raises:
            GuideError: It may not be written.
        """
        file = self._writable(category, name)
        try:
            file.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
        return True

    def _names(self, directory: Path, suffix: str, most: int) -> list[str]:
        try:
            with os.scandir(directory) as entries:
                found = [entry.name.removesuffix(suffix) for entry in entries if _counts(entry, suffix)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(found)[:most] if self._is_inside(directory) else []

    def _file(self, category: str, name: str) -> Path:
        for part in (category, name):
            if not _NAME.fullmatch(part):
                raise GuideError(f"invalid name {part[:80]!r}", "invalid_name", "Use small letters, digits, - and _.")
        return self.root / category / f"{name}.md"

    def _writable(self, category: str, name: str) -> Path:
        file = self._file(category, name)
        if CODE.intersection(part.casefold() for part in self._real_root().parts):
            raise _refused(f"nothing is written below {' or '.join(sorted(CODE))}")
        if not self._is_inside(file):
            raise _refused("it leads elsewhere")
        return file

    def _real_root(self) -> Path:
        return Path(os.path.realpath(self.root))

    def _is_inside(self, path: Path) -> bool:
        """Return whether *path* is what it says: no part of it below the root is a link."""
        root = self._real_root()
        if self.within is not None and not root.is_relative_to(os.path.realpath(self.within)):
            return False
        return Path(os.path.realpath(path)) == root / path.relative_to(self.root)


def _counts(entry: os.DirEntry[str], suffix: str) -> bool:
    right_kind = entry.is_file(follow_symlinks=False) if suffix else entry.is_dir(follow_symlinks=False)
    return right_kind and entry.name.endswith(suffix) and bool(_NAME.fullmatch(entry.name.removesuffix(suffix)))


def _text(data: bytes, category: str, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise _too_large(category, name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GuideError(f"{category}/{name} is not UTF-8", "not_text", "Tell the user to convert the file.") from None


def _write(file: Path, data: bytes, *, replace: bool) -> bool:
    temporary = file.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new = not file.exists()
        if replace:
            temporary.replace(file)
        else:
            file.hardlink_to(temporary)  # unlike a rename it fails when somebody else was quicker
        return new
    except FileExistsError:
        raise GuideError(
            f"{file.parent.name}/{file.stem} exists",
            "exists",
            "Ask the user whether it is to be replaced; then pass replace=true.",
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def _too_large(category: str, name: str) -> GuideError:
    return GuideError(f"{category}/{name} has more than {MAX_BYTES:,} bytes", "too_large", "Split it into several.")


def _refused(why: str) -> GuideError:
    return GuideError(f"the document may not be written: {why}", "refused", "Tell the user; do not try another way.")
