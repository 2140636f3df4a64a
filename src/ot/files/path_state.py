"""PathState: what is at a path, in so far as an undo compares and restores it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, Self

from ot.files.no_links import NO_LINK, READ

BLOCK = 1 << 18
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def new_hash(data: bytes = b"") -> hashlib.blake2b:
    """Return a hash that has taken *data*."""
    return hashlib.blake2b(data, digest_size=16)


class PathState(NamedTuple):
    """What is there: nothing, a file, a directory, a link, something else, or a note of the pack ``memory``."""

    kind: str = "nothing"
    mode: int | None = None
    """The permissions; None: any."""
    size: int = 0
    content: str = ""
    """The hash of a file's bytes, or a link's target; empty for a file: not known."""

    @classmethod
    def of_json(cls, found: Iterable[Any]) -> Self:
        """Rebuild it from the list that JSON makes of it."""
        return cls(*found)

    @property
    def is_known(self) -> bool:
        """Whether it can be told from all others: of a file that is too large nobody knows what it holds."""
        return self.kind != "file" or bool(self.content)

    def matches(self, present: PathState) -> bool:
        """Return whether what is *present* is this."""
        return self.is_known and self._replace(mode=present.mode if self.mode is None else self.mode) == present

    def with_hash(self, data: bytes | None) -> PathState:
        """Return the same with the hash of its bytes, where they are known."""
        return self if data is None else self._replace(content=new_hash(data).hexdigest())

    def describe(self) -> str:
        """Return it in words."""
        mode = "" if self.mode is None else f" with mode {self.mode:o}"
        size = f" of {self.size:,} bytes" if self.kind in ("file", "note") else ""
        link = f" to {self.content!r}" if self.kind == "link" else ""
        return "nothing" if self == NOTHING else f"a {self.kind}{link}{size}{mode}"


NOTHING = PathState()
EMPTY = PathState("file").with_hash(b"")


def look_at(directory: int, name: str, most: int = -1) -> tuple[PathState, bytes | None]:
    """Return what *name* is in an open directory, with a file's hash; with its bytes instead if it has at most *most*.

    A file that cannot be read has neither; nor has one with more than *most* bytes, unless that is less than nothing.
    """
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return NOTHING, None
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    if kind == "link":
        return PathState(kind, content=os.readlink(name, dir_fd=directory)), None
    state = PathState(kind, stat.S_IMODE(found.st_mode), found.st_size if kind == "file" else 0)
    if kind != "file" or state.size > most >= 0:
        return state, None
    try:
        file = os.fdopen(os.open(name, READ | NO_LINK, dir_fd=directory), "rb", 0)
    except OSError:
        return state, None
    with file:
        if most < 0:
            return state_of_file(file), None
        data = b"".join(iter(lambda: file.read(most + 1), b""))
        return (state._replace(size=len(data)), data) if len(data) <= most else (state, None)


def state_of_file(file: BinaryIO) -> PathState:
    """Return the state of an open regular file, whose bytes are read from the first on."""
    found, digest = os.fstat(file.fileno()), new_hash()
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
    return PathState("file", stat.S_IMODE(found.st_mode), found.st_size, digest.hexdigest())
