"""How a result lies in an object store: one object with its content, then its index, its meta and their sizes.

An object appears whole or not at all, so nobody sees a part of a result; its last bytes say where everything is.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from pydantic import ValidationError

from ot.output.result_blobs import ResultMeta, Sealed
from ot.output.result_lines import index_size

FOLDER = "v1/"
TAIL_BYTES = 65_536
"""What is read first: it holds the meta, and the index of half a gigabyte."""

_MARK = b"OneTool1"
_SIZES = struct.Struct(f"<QQQ{len(_MARK)}s")
"""The bytes of content, index and meta, and a mark that tells our objects from others."""


def folder_of(owner: str) -> str:
    """Return where an owner's results are: it names nobody."""
    return f"{FOLDER}{hashlib.sha256(owner.encode()).hexdigest()[:32]}/"


def tail_of(sealed: Sealed) -> bytes:
    """Return what follows the content."""
    meta = sealed.meta.model_dump_json().encode()
    return sealed.index + meta + _SIZES.pack(sealed.meta.size_bytes, len(sealed.index), len(meta), _MARK)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of one object are."""

    content: int
    index: int
    meta: int

    @classmethod
    def read(cls, end: bytes, size: int) -> Layout | None:
        """Return the layout of an object of *size* bytes, given its *end*; nothing where it is not one of ours."""
        if len(end) < _SIZES.size:
            return None
        content, index, meta, mark = _SIZES.unpack(end[-_SIZES.size :])
        layout = cls(content, index, meta)
        is_whole = mark == _MARK and content + index + meta + _SIZES.size == size
        return layout if is_whole and index == index_size(content) else None

    @property
    def tail(self) -> int:
        """How many bytes follow the content."""
        return self.index + self.meta + _SIZES.size


def parts_of(tail: bytes, layout: Layout) -> tuple[ResultMeta | None, bytes]:
    """Return the meta, or nothing if it is damaged, and the index."""
    begin = len(tail) - layout.tail
    index = tail[begin : begin + layout.index]
    text = tail[begin + layout.index : begin + layout.index + layout.meta]
    try:
        meta = ResultMeta.model_validate_json(text)
    except ValidationError:
        return None, index
    return (meta if meta.size_bytes == layout.content else None), index
