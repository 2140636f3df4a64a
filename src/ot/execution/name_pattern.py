"""Whether one pattern of names holds another: decided, not guessed, over every name that there could be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

PIECES = re.compile(r"\*+|\[!?+\]?+[^\]]*+\]|.", re.DOTALL)
"""A run of stars, a whole bracket, or one character, divided as ``fnmatch`` does."""
MOST_STEPS = 500
"""Where it would take more, it is not proved; patterns that people write take a few dozen."""

States = frozenset[int]


def holds(wide: str, narrow: str) -> bool:
    """Return whether it is proved that *wide* matches every name that *narrow* matches."""
    outer, inner = PIECES.findall(wide), PIECES.findall(narrow)
    letters = _letters(wide + narrow)
    start = (_reached(inner, [0]), _reached(outer, [0]))
    seen, waiting = {start}, [start]
    while waiting:
        mine, theirs = waiting.pop()
        if len(inner) in mine and len(outer) not in theirs:
            return False  # a name ends here that only the narrow one matches
        after = {(_after(inner, mine, letter), _after(outer, theirs, letter)) for letter in letters}
        new = {pair for pair in after if pair[0]} - seen
        seen |= new
        waiting += new
        if len(seen) > MOST_STEPS:
            return False
    return True


def is_narrower(one: str, other: str) -> bool:
    """Return whether it is proved that *other* matches all that *one* matches, and more."""
    return holds(other, one) and not holds(one, other)


def _letters(patterns: str) -> list[str]:
    """Return a character of every kind that the patterns can tell apart: those in them, and their neighbours."""
    codes = {ord(letter) + step for letter in (*patterns, "a") for step in (-1, 0, 1)}
    return [chr(code) for code in codes if 0 <= code <= 0x10FFFF]


def _reached(pieces: list[str], places: Iterable[int]) -> States:
    """Return *places* with those that stars lead on to without a letter."""
    found = set(places)
    for place, piece in enumerate(pieces):
        if place in found and piece.startswith("*"):
            found.add(place + 1)
    return frozenset(found)


def _after(pieces: list[str], places: States, letter: str) -> States:
    """Return where *letter* leads from *places*."""
    here = [place for place in places if place < len(pieces)]
    stay = [place for place in here if pieces[place].startswith("*")]
    steps = [place + 1 for place in here if place not in stay and fnmatchcase(letter, pieces[place])]
    return _reached(pieces, [*stay, *steps])
