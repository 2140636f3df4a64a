"""Marks text from outside, so that a model does not take it for instructions."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

TRIGGER = re.compile(r"(?:mcp__onetool|__onetool|__ot)\w*", re.IGNORECASE)
TAG = re.compile(r"<\s*/?\s*external-content[^>\n]{0,100}>?", re.IGNORECASE)
"""A tag that is never closed must not take the rest of the text with it."""
TAG_IN_JSON = re.compile(r"<\s*/?\s*external-content[^>\n\"\\]{0,100}>?", re.IGNORECASE)
"""The same, and it ends with the string that it stands in: the text must stay JSON."""
UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, invisible ones and those that turn the direction of writing."""


def redact(text: str, *, in_json: bool = False) -> str:
    """Return *text* with run triggers and boundary tags made harmless, and unseen characters made visible.

    What is JSON stays JSON when that is said.
    """
    tag, backslash = (TAG_IN_JSON, "\\\\") if in_json else (TAG, "\\")
    text = tag.sub("[REDACTED:tag]", TRIGGER.sub("[REDACTED:trigger]", text))
    return UNSEEN.sub(lambda found: f"{backslash}u{{{ord(found[0]):x}}}", text)


def wrap(text: str, tools: Sequence[str]) -> str:
    """Return *text* redacted, between boundary tags that nothing inside it could have guessed."""
    boundary = f"external-content-{secrets.token_hex(16)}"
    source = re.sub(r"[^\w.,\- ]", "", ", ".join(tools)) or "program"
    return f'<{boundary} source="{source}">\n{redact(text)}\n</{boundary}>'
