"""Marks text from outside, so that a model does not take it for instructions."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from io import StringIO

PIECE = 1 << 16
"""Characters that are searched at a time."""
_UNSEEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
"""Control characters, invisible ones and those that turn the direction of writing."""


START = re.compile(rf"[_<{_UNSEEN[1:]}(?:(?<=_)(?=_[oO])|(?<=<)(?=[\s/eE])|(?<![_<]))")
"""What anything harmful begins with; found quickly."""
AHEAD = 2
"""How far it looks ahead."""


def _harmful(ends: str) -> re.Pattern[str]:
    trigger = r"__(?:onetool|ot)\w*+"
    # A tag that is never closed must not take the rest of the text with it.
    tag = rf"<\s{{0,400}}+/?+\s{{0,400}}+external-content[^>\n{ends}]{{0,100}}+>?+"
    return re.compile(f"(?P<trigger>{trigger})|(?P<tag>{tag})|{_UNSEEN}", re.IGNORECASE)


IN_TEXT = _harmful("")
IN_JSON = _harmful(r"\"\\")
"""There a tag ends with the string that it stands in: the text must stay JSON."""


def neutralize(text: str, *, in_json: bool = False) -> str:
    """Return *text* with run triggers and boundary tags made harmless, and unseen characters made visible.

    What is JSON stays JSON when that is said.
    """
    pattern, backslash = (IN_JSON, "\\\\") if in_json else (IN_TEXT, "\\")
    written, end = StringIO(), 0
    for found in _find(pattern, text):
        written.write(text[end : found.start()])
        written.write(f"[REDACTED:{found.lastgroup}]" if found.lastgroup else f"{backslash}u{{{ord(found[0]):x}}}")
        end = found.end()
    return written.getvalue() + text[end:]


def _find(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what the pattern finds; the text is searched a piece at a time, for a search holds up other threads."""
    place = 0
    while place < len(text):
        start = START.search(text, place, place + PIECE + AHEAD)
        found = pattern.match(text, start.start(), start.start() + PIECE) if start else None
        if found:
            yield found
        place = found.end() if found else start.end() if start else place + PIECE


def wrap(text: str, tools: Sequence[str]) -> str:
    """Return *text* neutralized, between boundary tags that nothing inside it could have guessed."""
    boundary = f"external-content-{secrets.token_hex(16)}"
    source = re.sub(r"[^\w.,\- ]", "", ", ".join(tools)) or "program"
    return f'<{boundary} source="{source}">\n{neutralize(text)}\n</{boundary}>'
