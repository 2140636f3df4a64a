"""Reads what a server says in ``WWW-Authenticate`` when it refuses a request."""

from __future__ import annotations

import re
from collections.abc import Mapping

FIELD = re.compile(r'\b(\w+)=(?:"([^"\\]{0,2000})"|([^\s,"]{1,2000}))')
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
"""The characters that OAuth allows: what is printed into a command line holds no others."""


def challenge_fields(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the challenge, by name."""
    text = headers.get("www-authenticate", "")[:8000]
    return {found[1].lower(): found[2] or found[3] or "" for found in FIELD.finditer(text)}


def missing_scope(headers: Mapping[str, str]) -> str:
    """Return the scope that a refused request would have needed, or nothing."""
    fields = challenge_fields(headers)
    scope = fields.get("scope", "")
    is_fit = SCOPE.fullmatch(scope) and "'" not in scope
    return scope if fields.get("error") == "insufficient_scope" and is_fit else ""
