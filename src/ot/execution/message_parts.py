"""How many parts a message holds, found before anything is built of them."""

from __future__ import annotations

MARKS = (b",", b"[", b"{")


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
        place = end_of_text(message, text + 1)
    return left < sum(message.count(mark, place) for mark in MARKS)


def end_of_text(message: bytes, place: int) -> int:
    """Return where the text that began before *place* has ended."""
    while (end := message.find(b'"', place)) >= 0:
        escapes = end - len(message[max(place - 1, 0) : end].rstrip(b"\\")) - max(place - 1, 0)
        if escapes % 2 == 0:
            return end + 1
        place = end + 1
    return len(message)
