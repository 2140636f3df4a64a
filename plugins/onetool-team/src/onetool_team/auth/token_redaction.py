"""Keeps tokens out of the log by their form: one that nobody has seen yet is left out as well."""

from __future__ import annotations

import re

from ot.brief_repr import Redact

SIGNS = ("otk_", "otl_", "eyJ", "earer ")
"""Without one of these there is no token in a text."""
TOKENS = re.compile(
    r"\bot[kl]_[A-Za-z0-9_-]{43}+"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}+"
)
SHOWN = "[secret:token]"


def without_tokens(redact: Redact) -> Redact:
    """Return what redacts as *redact* does, and also whatever looks like a bearer token."""

    def redact_tokens(text: str) -> str:
        text = redact(text)
        return TOKENS.sub(SHOWN, text) if any(sign in text for sign in SIGNS) else text

    return redact_tokens
