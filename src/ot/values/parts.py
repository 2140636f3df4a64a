"""How many parts a value holds, found before anything is built of them: in memory, or still as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ot_sdk.converter import MAX_DEPTH, MAX_NODES, kind_of

CONTAINERS = frozenset({dict, list, tuple, set, frozenset})
MARKS = (b",", b"[", b"{")


class NotSerializable(ValueError):
    """The value is nested too deeply, or holds too much."""


class TooManyParts(NotSerializable):
    """The value holds too much."""

    def __str__(self) -> str:
        return "the value holds too many parts to be written out"


class TooDeeplyNested(NotSerializable):
    """The value is nested too deeply, or holds itself."""

    def __str__(self) -> str:
        return f"the value is nested more than {MAX_DEPTH} levels deep"


@dataclass(frozen=True)
class Unread:
    """A value of too many parts to be read: JSON on its way into the result store, tagged as ``ot_sdk`` does."""

    data: bytes


def count_parts(value: Any, left: int = MAX_NODES, depth: int = 0) -> int:
    """Return what remains of *left* after counting every part of *value*; a shared part counts each time it is reached.

    Nothing is built: what will be refused must not first fill the memory, which the collector would then walk
    through again and again while the whole server waits.

    Raises:
        NotSerializable: It is too deep or too large.
    """
    kind = kind_of(value)
    if kind not in CONTAINERS:
        return left
    if depth > MAX_DEPTH:
        raise TooDeeplyNested
    left -= len(value)
    if left < 0:
        raise TooManyParts
    for item in value.values() if kind is dict else value:
        if type(item) in CONTAINERS:
            left = count_parts(item, left, depth + 1)
    return left


def holds_more(value: Any, most: int) -> bool:
    """Return whether *value* holds more than *most* parts, or is nested too deeply to tell."""
    try:
        count_parts(value, most)
    except NotSerializable:
        return True
    return False


def has_many_parts(message: bytes, most: int) -> bool:
    """Return whether *message*, which is JSON, holds more than *most* parts: commas and opened containers."""
    if len(message) <= most or sum(message.count(mark) for mark in MARKS) <= most:
        return False
    # Some of them may stand in texts; counted between the texts, in steps that let others work.
    left, place = most, 0
    while (text := message.find(b'"', place)) >= 0:
        left -= sum(message.count(mark, place, text) for mark in MARKS)
        if left < 0:
            return True
        place = _end_of_text(message, text + 1)
    return left < sum(message.count(mark, place) for mark in MARKS)


def _end_of_text(message: bytes, place: int) -> int:
    """Return the end of the text that began before *place*."""
    while (end := message.find(b'"', place)) >= 0:
        escapes = end - len(message[max(place - 1, 0) : end].rstrip(b"\\")) - max(place - 1, 0)
        if escapes % 2 == 0:
            return end + 1
        place = end + 1
    return len(message)
