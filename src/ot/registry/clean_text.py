"""Text that came from outside, without what a reader cannot see."""

from __future__ import annotations

import keyword
import re
import unicodedata

from ot.visible_text import INVISIBLE

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
KEPT = "\n\t"


def clean_text(text: object, limit: int) -> str:
    """Return *text* without control, bidirectional and invisible characters, at most *limit* characters of it."""
    if not isinstance(text, str):
        return ""
    cut = text[: 2 * limit].replace("\r\n", "\n").replace("\r", "\n")
    if not cut.isascii() or not cut.isprintable():
        seen = (mark for mark in INVISIBLE.sub("", cut) if mark in KEPT or unicodedata.category(mark) not in UNSEEN)
        cut = "".join(seen)
    return cut if len(cut) <= limit else cut[: limit - 1].rstrip() + "…"


def clean_line(text: object, limit: int) -> str:
    """Return *text* as ``clean_text`` does, on one line."""
    return " ".join(clean_text(text, limit).split())


def identifier(name: str) -> str:
    """Return a Python name that reads like *name*: ``max-results`` is ``max_results``, ``from`` is ``from_``."""
    # Python itself reads a name in this form, so that a look-alike would never be found.
    plain = unicodedata.normalize("NFKC", clean_text(name, 200))
    words = re.sub(r"\W", "_", plain)
    if not words.isidentifier():
        words = f"_{words}"
    if not words.isidentifier():
        words = re.sub(r"[^0-9A-Za-z_]", "_", words)
    return f"{words}_" if keyword.iskeyword(words) else words


def unique_identifiers(names: list[str]) -> dict[str, str]:
    """Return a Python name for each of *names*, no two the same; a name that is one already keeps it."""
    taken: dict[str, str] = {}
    for name in sorted(dict.fromkeys(names), key=lambda name: identifier(name) != name):
        wanted = identifier(name)
        free, number = wanted, 2
        while free in taken:
            free, number = f"{wanted}_{number}", number + 1
        taken[free] = name
    by_name = {name: free for free, name in taken.items()}
    return {name: by_name[name] for name in names}
