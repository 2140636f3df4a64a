"""The known names nearest to an unknown one, for error texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

MAX_NAME = 200
"""Characters of a pack's, tool's or parameter's name; a longer one is malformed, and an error shows its beginning."""


WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def same_name(wanted: str, names: Iterable[str]) -> str:
    """Return the only one of *names* with the letters of *wanted*, whatever its case, ``_`` and ``-``, or nothing."""
    letters = _letters(wanted)
    found = [name for name in names if _letters(name) == letters] if letters else []
    return found[0] if len(found) == 1 else ""


def _letters(name: str) -> str:
    # A look-alike letter of another alphabet must never match.
    return name.lower().replace("_", "").replace("-", "") if name.isascii() else ""


def _words(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def nearest_of(wanted: str, described: Mapping[str, str]) -> list[str]:
    """Return the three names in *described* most like *wanted* or described by its words; of a sure guess two."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - as below

    wanted = wanted[:MAX_NAME]
    words, guess = _words(wanted), did_you_mean(wanted, list(described))

    def likeness(name: str) -> float:
        shared = len(words & _words(name)) + 0.5 * len(words & _words(described[name])) + 9 * (name == guess)
        return 100 * shared + fuzz.ratio(wanted.lower(), name.lower())

    return sorted(described, key=likeness, reverse=True)[: 2 if guess else 3]


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
    if found:
        return found[0]
    # ``read`` for ``read_file``, and the other way round.
    words = _words(wanted[:MAX_NAME])
    alike = [name for name in names if words and (own := _words(name)) and (own <= words or words <= own)]
    return alike[0] if len(alike) == 1 else ""


def listing(wanted: str, names: Sequence[str]) -> str:
    """Return the names nearest to *wanted* as text, and how many more there are."""
    shown = nearest_names(wanted, names)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def available(what: str, wanted: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about the unknown name *wanted*: a guess, and the names that exist."""
    guess = did_you_mean(wanted, names)
    return (f", did you mean '{guess}'?" if guess else ".") + f" Available {what}: {listing(wanted, names)}"
