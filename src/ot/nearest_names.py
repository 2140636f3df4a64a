"""The known names nearest to one that is unknown, for the texts of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

MAX_NAME = 200
"""Characters of a pack's, tool's or parameter's name; a longer one is malformed, and an error shows its beginning."""


WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def same_name(wanted: str, names: Iterable[str]) -> str:
    """Return the only one of *names* with the letters of *wanted*, whatever its case, ``_`` and ``-``, or nothing."""
    # A look-alike letter of another alphabet must never match.
    letters = _letters(wanted) if wanted.isascii() else ""
    found = [name for name in names if name.isascii() and _letters(name) == letters] if letters else []
    return found[0] if len(found) == 1 else ""


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case, however it puts them together."""
    return [word.lower() for word in WORD.findall(name)]


def nearest_of(wanted: str, described: Mapping[str, str]) -> list[str]:
    """Return the three names in *described* most like *wanted*, or whose descriptions have its words.

    Where one is probably meant, it is the first of two.
    """
    from rapidfuzz import fuzz  # noqa: PLC0415 - as below

    wanted = wanted[:MAX_NAME]
    words = {*words_of(wanted)}

    def likeness(name: str) -> float:
        shared = len(words & {*words_of(name)}) + 0.5 * len(words & {*words_of(described[name])})
        return 100 * shared + fuzz.ratio(wanted.lower(), name.lower())

    ranked = sorted(described, key=likeness, reverse=True)
    guess = did_you_mean(wanted, ranked)
    return list(dict.fromkeys((guess, *ranked)))[:2] if guess else ranked[:3]


def nearest_names(wanted: str, names: Sequence[str], limit: int = 20) -> list[str]:
    """Return at most *limit* of *names*, those most like *wanted* first."""
    if len(names) <= limit:
        return sorted(names)
    from rapidfuzz import process  # noqa: PLC0415 - only an error's text needs it, no start-up should pay for it

    return [name for name, _, _ in process.extract(wanted[:MAX_NAME], names, limit=limit)]


def did_you_mean(wanted: str, names: Sequence[str]) -> str:
    """Return the one name that *wanted* is probably a slip of, or nothing."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415 - as above

    found = process.extractOne(wanted[:MAX_NAME], names, scorer=fuzz.ratio, score_cutoff=70)
    return found[0] if found else _with_same_words(wanted[:MAX_NAME], names)


def _with_same_words(wanted: str, names: Sequence[str]) -> str:
    """Return the only name whose words *wanted* has, or that has all of its: ``read`` for ``read_file``."""
    words = {*words_of(wanted)}
    found = [name for name in names if (own := {*words_of(name)}) and words and (own <= words or words <= own)]
    return found[0] if len(found) == 1 else ""


def listing(wanted: str, names: Sequence[str]) -> str:
    """Return the names nearest to *wanted* as text, and how many more there are."""
    shown = nearest_names(wanted, names)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def available(what: str, wanted: str, names: Sequence[str]) -> str:
    """Return how a sentence about the unknown name *wanted* ends: with a guess, and with the names that there are."""
    guess = did_you_mean(wanted, names)
    return (f", did you mean '{guess}'?" if guess else ".") + f" Available {what}: {listing(wanted, names)}"
