"""Text from others, made safe to show: readers see what it holds, and no terminal obeys it."""

from __future__ import annotations

import re

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""What moves a cursor, begins a line, turns the direction of writing, hides, or has no UTF-8; not tab and newline."""
INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks by their category that show nothing: fillers and variation selectors can carry hidden words."""


def visible(text: str) -> str:
    """Return *text* with everything that could steer a terminal written out; its lines and tabs stay."""
    return STEERING.sub(_write_out, text)


def visible_json(text: str) -> str:
    """Return *text*, which is JSON, as the same JSON without anything that could steer a terminal."""
    # JSON has such characters only inside its strings, where this is another way to write them.
    return STEERING.sub(lambda found: ascii_json(found[0]), text)


def ascii_json(mark: str) -> str:
    """Return one character as JSON writes it in ASCII."""
    units = mark.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


def printable(text: str) -> str:
    """Return *text* on one line, with everything written out that is not plainly seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark if mark.isprintable() and not INVISIBLE.match(mark) else _escape(mark) for mark in text)


def quote(text: str) -> str:
    """Return *text* in quotes, as Python writes it, that it cannot break out of."""
    return INVISIBLE.sub(_write_out, repr(text))


def _write_out(found: re.Match[str]) -> str:
    return _escape(found[0])


def _escape(mark: str) -> str:
    return mark.encode("unicode_escape").decode()
