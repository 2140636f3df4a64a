"""The known names nearest to one that is unknown, for the texts of errors."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAME = 200
"""Characters of a pack's, tool's or parameter's name; a longer one is malformed, and an error shows its beginning."""


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
    return found[0] if found else ""


def listing(wanted: str, names: Sequence[str]) -> str:
    """Return the names nearest to *wanted* as text, and how many more there are."""
    shown = nearest_names(wanted, names)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def available(what: str, wanted: str, names: Sequence[str]) -> str:
    """Return how a sentence about the unknown name *wanted* ends: with a guess, and with the names that there are."""
    guess = did_you_mean(wanted, names)
    return (f", did you mean '{guess}'?" if guess else ".") + f" Available {what}: {listing(wanted, names)}"
