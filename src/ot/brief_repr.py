"""A value in a few words, at a cost bounded by the words and not by the value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, cast

from ot.visible_text import quote

MARGIN = 8 << 10
"""Characters beyond those shown that are looked at for secrets: half a secret would not be known as one."""
MAX_DEPTH = 6
MAX_INT_BITS = 512
MAX_OBJECT_BYTES = 512
BRACKETS: Mapping[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}

type Redact = Callable[[str], str]


def brief_repr(value: object, most: int, redact: Redact = str) -> str:
    """Return *value* about as Python writes it, in little more than *most* characters and on one line."""
    writer = _Writer(most, redact)
    writer.write(value, 0)
    return "".join(writer.pieces)


def brief_text(text: str, most: int, redact: Redact = str) -> str:
    """Return *text* without secrets, cut to *most* characters; a secret that the cut would halve is left out whole."""
    if len(text) <= most + MARGIN:
        found = redact(text)
        return found if len(found) <= most else f"{found[: most - 1]}…"
    # What is at the end of the part that is looked at may be the beginning of a secret.
    found = redact(text[: most + 2 * MARGIN])[:-MARGIN]
    return f"{found[: most - 1]}…"


def quote_text(text: str, most: int, redact: Redact = str) -> str:
    """Return *text*, which a program or somebody else supplied, for a person to read after words of our own.

    It is on one line, in quotes that it cannot break out of, with everything written out that is not plainly seen, cut
    to about *most* characters and without secrets.
    """
    shown = brief_text(text, most, redact)
    written = quote(shown)
    # One character may take ten to write out.
    return written if len(written) <= 2 * most + 2 else quote(f"{shown[: most // 5]}…")


def brief_int(value: int) -> str:
    """Return a whole number, or how long it is: one of thousands of digits has no text that Python would write."""
    bits = value.bit_length()
    return repr(value) if bits <= MAX_INT_BITS else f"<a whole number of about {bits * 30103 // 100000:,} digits>"


class _Writer:
    """Writes a value in pieces until there is no more room."""

    def __init__(self, most: int, redact: Redact) -> None:
        self.pieces: list[str] = []
        self._left = most
        self._redact = redact

    def _put(self, text: str) -> None:
        self.pieces.append(text)
        self._left -= len(text)

    def write(self, value: object, depth: int) -> None:
        kind = type(value)
        if kind is str:
            self._text(cast("str", value), "")
        elif kind is bytes:
            self._text(cast("bytes", value)[: self._left + 3 * MARGIN].decode(errors="backslashreplace"), "b")
        elif kind is int:
            self._put(brief_int(cast("int", value)))
        elif kind in BRACKETS:
            self._parts(cast("Mapping[Any, Any] | list[Any]", value), depth)
        elif value is None or kind in (bool, float):
            self._put(repr(value))
        else:
            small = sys.getsizeof(value) <= MAX_OBJECT_BYTES
            self._put(f"{kind.__name__}({quote_text(str(value), MAX_OBJECT_BYTES)})" if small else f"<{kind.__name__}>")

    def _text(self, text: str, prefix: str) -> None:
        room = max(self._left, 10)
        self._put(prefix + quote_text(text, room, self._redact))
        if len(text) > room:
            self._put(f" ({len(text):,} characters)")

    def _parts(self, value: Mapping[Any, Any] | list[Any], depth: int) -> None:
        opening, closing = BRACKETS[type(value)]
        self._put(opening)
        shown = 0
        for part in islice(_items(value), len(value) if depth < MAX_DEPTH else 0):
            if self._left <= 0:
                break
            self._put(", " if shown else "")
            for place, one in enumerate(part):
                self._put(": " if place else "")
                self.write(one, depth + 1)
            shown += 1
        if len(value) > shown:
            self._put(f"{', ' * bool(shown)}… {len(value) - shown:,} more")
        self._put(closing)


def _items(value: Mapping[Any, Any] | list[Any]) -> Iterable[tuple[Any, ...]]:
    return value.items() if isinstance(value, Mapping) else ((part,) for part in value)
