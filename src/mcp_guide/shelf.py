"""Shelf: one directory of documents, ``<category>/<name>.md``; nothing outside it is ever touched."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from mcp_guide.document import MAX_BYTES, NAME, Document, Source, read_document
from mcp_guide.guide_error import GuideError

MAX_CATEGORIES = 200
MAX_DOCUMENTS = 1000
CODE = frozenset({".git", ".onetool"})
"""Folders in which a written file may come to run."""

_NAME = re.compile(NAME)
# A named pipe that was put in a file's place would hang for ever.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Shelf:
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
            GuideError: It is no text, or too large.
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
            raise too_large(category, name)
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
                raise GuideError(f"{part[:80]!r} is no name", "invalid_name", "Use small letters, digits, - and _.")
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
        raise too_large(category, name)
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


def too_large(category: str, name: str) -> GuideError:
    """Return the error of a document over the limit."""
    return GuideError(f"{category}/{name} has more than {MAX_BYTES:,} bytes", "too_large", "Split it into several.")


def _refused(why: str) -> GuideError:
    return GuideError(f"the document may not be written: {why}", "refused", "Tell the user; do not try another way.")
