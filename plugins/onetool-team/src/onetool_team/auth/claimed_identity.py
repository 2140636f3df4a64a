"""Whom the claims about a token name: principal, groups and scopes, however the claims were learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from onetool_team.auth.granted_scopes import scopes_of
from onetool_team.identity import Identity, TokenRefused
from onetool_team.settings import AccessTokens
from ot.brief_repr import brief_text
from ot.visible_text import printable

MAX_SUBJECT = 255
"""As OpenID Connect bounds it."""
MAX_GROUPS, MAX_GROUP = 500, 256
MAX_NAME = 80
NAMES = ("preferred_username", "name", "email")


def identity_of(claims: Mapping[str, Any], oauth: AccessTokens) -> Identity:
    """Return who *claims*, which were checked, are about.

    Raises:
        TokenRefused: They do not say it, or allow nothing here.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT or not _is_sound(subject):
        raise TokenRefused("the token's subject is missing or malformed")
    if "cnf" in claims:
        # It is worth nothing without the proof of a key, which is not checked here: a thief has only the token.
        raise TokenRefused("the token is bound to a key, and only plain bearer tokens are accepted")
    principal = principal_of(oauth.issuer, subject)
    return Identity(principal, _name(claims, subject), scopes_of(claims), _groups(claims, oauth.groups_claim))


def principal_of(issuer: str, subject: str) -> str:
    """Return the one text for both, which no other pair has: a ``|`` within them is written out."""
    return f"{_escape(issuer)}|{_escape(subject)}"


def is_for(audience: object, ours: str) -> bool:
    """Return whether *audience* is *ours* or a list with it, letter by letter."""
    if isinstance(audience, list):
        named = cast("list[Any]", audience)
        return ours in named and all(isinstance(one, str) for one in named)
    return isinstance(audience, str) and audience == ours


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("|", "%7C")


def _is_sound(text: str) -> bool:
    return text.isprintable() and text.strip() == text


def _name(claims: Mapping[str, Any], subject: str) -> str:
    """Return what people call the subject; it decides nothing."""
    found = (claims.get(key) for key in NAMES)
    named = next((name for name in found if isinstance(name, str) and name.strip()), subject)
    return printable(brief_text(named, MAX_NAME))


def _groups(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    named = claims.get(claim, [])
    # A group may also forbid: a list that cannot be read must not count as none.
    if not isinstance(named, list):
        raise TokenRefused(f"the token's claim {claim!r} is not a list of groups")
    groups = cast("list[Any]", named)
    if len(groups) > MAX_GROUPS or not all(isinstance(group, str) and len(group) <= MAX_GROUP for group in groups):
        raise TokenRefused(
            f"the token's claim {claim!r} holds more than {MAX_GROUPS} groups, or one that is not a name"
        )
    return frozenset(groups)
