"""Words as the search compares them: names taken apart, endings taken off."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

PARTS = re.compile(r"[A-Z]+(?![^\W\dA-Z_])|[A-Z]?[^\W\dA-Z_]+|\d+")
"""``getUserID``, ``get_user_id`` and ``get user ID`` have the same parts."""

TEXT = """
a about all am an and any are as at be been but by can could did do does for from had has have how i if in into is it
its just let like may me my need of on one or our out please should so some something than that the their them then
there these this those to up us use using via want was we were what when where which will with would you your
"""
SMALL = frozenset(TEXT.split())
"""Words that say nothing of what is sought."""


WHOLE = re.compile(r"[^\W_]+")
MOST_TEXT = 1_000
"""Characters of a text that are looked at: beyond them stand examples and small print."""


def words_of(text: str) -> list[str]:
    """Return the words of *text* as stems; one that has parts is there as a whole, too."""
    return [word for whole in WHOLE.findall(text[:MOST_TEXT]) for word in _stems(whole)]


@lru_cache(maxsize=50_000)
def _stems(whole: str) -> tuple[str, ...]:
    parts = [] if whole.islower() or whole.istitle() else PARTS.findall(whole)
    return (stem(whole), *(stem(part) for part in parts if len(parts) > 1))


def sought_words(query: str) -> list[tuple[str, str]]:
    """Return the words of a query that say something, each as it was written and as its stem."""
    parts = PARTS.findall(query)
    telling = [part for part in parts if part.lower() not in SMALL]
    return list({stem(part): (part, stem(part)) for part in telling or parts}.values())


def joined_words(query: str) -> list[tuple[str, str]]:
    """Return each two neighbours of a query as one word: ``drop-down`` and ``dropDown`` are also ``dropdown``."""
    parts = PARTS.findall(query)
    return [(f"{first} {second}", stem(first + second)) for first, second in pairwise(parts)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return *word* in small letters without its ending, roughly: words that agree in that mean the same."""
    word = _without_plural(word.lower())
    for ending, shortest in (("ing", 3), ("ed", 3), ("er", 4), ("ion", 5)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest and word[-len(ending) - 1] not in "e":
            word = _undoubled(word[: -len(ending)])
            break
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def _without_plural(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word
