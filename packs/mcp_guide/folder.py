"""Folder: documents as files ``<category>/<name>.md``; nothing outside the folder is ever touched."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_core import ToolFailure
from mcp_guide.document import MAX_BYTES, Document, Source, read_document

MAX_DOCUMENTS = 1000
MAX_SKIPPED = 100
NAMES = "small letters, digits, - and _"
CODE = frozenset({".git", ".onetool"})
"""Folders in which a written file might be executed."""
Key = tuple[str, str]

_NAME = re.compile(r"[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?")
# A named pipe that was put in a file's place would hang for ever.
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Folder:
    """The documents below *root*; *within* is the directory that even a link at *root* may not lead out of."""

    root: Path
    source: Source
    within: Path | None = None

    def list_files(self) -> tuple[dict[Key, Path], list[str]]:
        """Return the files of all documents by category and name, and what was skipped, each with the reason."""
        files: dict[Key, Path] = {}
        skipped: list[str] = []
        for file in self._markdown():
            path = file.relative_to(self.root)
            names = tuple(_name_of(part) for part in path.with_suffix("").parts)
            if why := self._unfit(file, names, files):
                skipped.append(f"{self.source}: {path.as_posix()} ({why})")
            else:
                files[names[0], names[1]] = file
        return files, skipped[:MAX_SKIPPED]

    def _markdown(self) -> Iterator[Path]:
        """Yield markdown files and links to folders, in order; hidden ones are skipped."""
        for place, folders, names in os.walk(self.root, onerror=_unless_missing):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            links = [name for name in folders if (Path(place) / name).is_symlink()]
            yield from (Path(place) / name for name in links)
            yield from (Path(place) / name for name in sorted(names) if re.fullmatch(r"[^.].*\.md", name, re.I))

    def _unfit(self, file: Path, names: tuple[str, ...], files: dict[Key, Path]) -> str:
        if not self._is_inside(file) or not file.is_file():
            return "a link, or no file"
        if len(names) != 2:
            return "it should be <category>/<name>.md"
        if not all(names):
            return f"names should be {NAMES}"
        if names in files:
            return f"{files[names].name} has the same name"
        return "there are too many" if len(files) >= MAX_DOCUMENTS else ""

    def read(self, key: Key, file: Path) -> Document:
        """Return the document that *file* is, if it is text and not too large."""
        with os.fdopen(os.open(file, _READ), "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _too_large(*key)
        try:
            return read_document(*key, self.source, data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise ToolFailure(
                f"{'/'.join(key)} is not UTF-8", "not_text", "Tell the user to convert the file."
            ) from None

    def put(self, category: str, name: str, content: str, *, replace: bool) -> bool:
        """Write a document, whole or not at all, and return whether it is new."""
        if len(data := content.encode()) > MAX_BYTES:
            raise _too_large(category, name)
        file = self._writable(category, name)
        if not file.exists() and len(self.list_files()[0]) >= MAX_DOCUMENTS:
            raise ToolFailure("the guide is full", "limit", f"It holds {MAX_DOCUMENTS} documents.")
        file.parent.mkdir(parents=True, exist_ok=True)
        if not self._is_inside(file):
            raise _refusal("its directory leads elsewhere")
        return _write(file, data, replace=replace)

    def remove(self, category: str, name: str) -> bool:
        """Remove a document and its category when that was the last; return whether there was one."""
        file = self._writable(category, name)
        try:
            file.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
        return True

    def _writable(self, category: str, name: str) -> Path:
        require_names(category, name)
        files = self.list_files()[0]
        places = {key[0]: file.parent for key, file in files.items()}
        file = files.get((category, name)) or places.get(category, self.root / category) / f"{name}.md"
        if CODE.intersection(part.casefold() for part in Path(os.path.realpath(self.root)).parts):
            raise _refusal(f"nothing is written below {' or '.join(sorted(CODE))}")
        if not self._is_inside(file):
            raise _refusal("it leads elsewhere")
        return file

    def _is_inside(self, path: Path) -> bool:
        """Return whether *path* is what it says: no part of it below the root is a link."""
        root = Path(os.path.realpath(self.root))
        if self.within is not None and not root.is_relative_to(os.path.realpath(self.within)):
            return False
        return Path(os.path.realpath(path)) == root / path.relative_to(self.root)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _name_of(written: str) -> str:
    """Return the one name that a file's or folder's can mean: ``How to Release`` is ``how-to-release``."""
    name = re.sub(r"[ .]+", "-", written.lower())
    return name if _NAME.fullmatch(name) else ""


def require_names(*names: str) -> None:
    """Check that each of *names* can be that of a document or a category."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ToolFailure(f"invalid name {name[:80]!r}", "invalid_name", f"Use {NAMES}.")


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
            file.hardlink_to(temporary)  # unlike a rename it fails if another process was faster
        return new
    except FileExistsError:
        advice = "Ask the user whether it is to be replaced; then pass replace=true."
        raise ToolFailure(f"{file.parent.name}/{file.stem} exists", "exists", advice) from None
    finally:
        temporary.unlink(missing_ok=True)


def _too_large(category: str, name: str) -> ToolFailure:
    return ToolFailure(f"{category}/{name} has more than {MAX_BYTES:,} bytes", "too_large", "Split it into several.")


def _refusal(why: str) -> ToolFailure:
    return ToolFailure(f"the document may not be written: {why}", "refused", "Tell the user; do not try another way.")
