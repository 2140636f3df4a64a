"""How many parts a message holds, found before anything is built of them."""

from __future__ import annotations

MAX_PARTS = 6_000_000
"""Opened containers and commas; a value of the most nodes that are allowed has fewer, tags included."""
MARKS = (b",", b"[", b"{")


def require_few_parts(message: bytes) -> None:
    """Return when *message*, which is JSON, can be read without filling the memory.

    Raises:
        ValueError: It holds too many parts.
    """
    if sum(message.count(mark) for mark in MARKS) <= MAX_PARTS:
        return
    # Some of them may stand in texts; counted between the texts, in steps that let others work.
    left, place = MAX_PARTS, 0
    while (text := message.find(b'"', place)) >= 0:
        left -= sum(message.count(mark, place, text) for mark in MARKS)
        if left < 0:
            break
        place = _end_of_text(message, text + 1)
    left -= sum(message.count(mark, place) for mark in MARKS)
    if left < 0:
        raise ValueError("a message holds too many parts")


def _end_of_text(message: bytes, place: int) -> int:
    """Return where the text that began before *place* has ended."""
    while (end := message.find(b'"', place)) >= 0:
        escapes = end - len(message[max(place - 1, 0) : end].rstrip(b"\\")) - max(place - 1, 0)
        if escapes % 2 == 0:
            return end + 1
        place = end + 1
    return len(message)
