"""ReplyBlocks: the non-text content of tools, and what they say about their results, for one reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ot.registry.proxy_target import BLOCK

MOST_BLOCKS = 32
MOST_BYTES = 8 << 20
MOST_WAITING_BYTES = 32 << 20
"""Of the blocks that no program has returned or shown yet."""
MOST_META_BYTES = 32 << 10
MOST_NOTES = 20
MOST_NOTE = 1000

Block = Mapping[str, Any]


class ReplyBlocks:
    """Collects what tools tell, until it is too much for one reply."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.blocks: list[Block] = []
        self.meta: list[dict[str, Any]] = []
        self.left_out = 0
        self._bytes = 0
        self._meta_bytes = 0
        self._notes: dict[str, None] = {}
        self._waiting: dict[str, Block] = {}
        self._waiting_bytes = 0

    def keep(self, block: Block, id: str) -> None:
        """Keep a content block that the program knows by *id*, until it is returned or shown; old ones make room."""
        self._drop(id)
        self._waiting[id] = block
        self._waiting_bytes += _size(block)
        while self._waiting_bytes > MOST_WAITING_BYTES:
            self._drop(next(iter(self._waiting)))

    def _drop(self, id: str) -> None:
        if (block := self._waiting.pop(id, None)) is not None:
            self._waiting_bytes -= _size(block)

    def show(self, value: Any) -> bool:
        """Take the kept blocks that *value* holds, and return whether there are any."""
        found = [id for id in dict.fromkeys(block_ids(value)) if id in self._waiting] if self._waiting else []
        for id in found:
            self.add(self._waiting[id])
            self._drop(id)
        return bool(found)

    def add(self, block: Block) -> None:
        """Take a content block in wire form, if there is room for it."""
        size = _size(block) if len(self.blocks) < MOST_BLOCKS else MOST_BYTES
        if len(self.blocks) >= MOST_BLOCKS or self._bytes + size > MOST_BYTES:
            self.left_out += 1
            return
        self._bytes += size
        self.blocks.append(block)

    def add_meta(self, tool: str, meta: Block) -> None:
        """Take the ``_meta`` of a tool's result, if there is room for it."""
        self._meta_bytes += _size(meta)
        if self._meta_bytes <= MOST_META_BYTES:
            self.meta.append({"tool": tool, "meta": dict(meta)})

    def add_note(self, tool: str, text: str) -> None:
        """Take what a tool says beside its value; the same words of one tool count once."""
        if len(self._notes) < MOST_NOTES:
            self._notes[f"{tool}: {text[:MOST_NOTE]}"] = None

    @property
    def notes(self) -> str:
        """What the tools said beside their values."""
        return "\n".join(self._notes)

    @property
    def note(self) -> str:
        """What to say when something was left out."""
        if not self.left_out:
            return ""
        parts = "1 part" if self.left_out == 1 else f"{self.left_out} parts"
        return f"note: {parts} of the tools' content did not fit into this reply and were left out"


def block_ids(value: Any) -> Iterator[str]:
    """Yield the names of content blocks in plain data; it was bounded when it crossed."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found = cast("dict[Any, Any]", part)
            if isinstance(found.get(BLOCK), str):
                yield found[BLOCK]
            waiting.extend(reversed(found.values()))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(cast("list[Any]", part)))


def _size(data: Block) -> int:
    return len(json.dumps(data, default=str))
