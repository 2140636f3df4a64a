"""What a token allows: the scopes ``run`` and ``admin``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from onetool_team.identity import TokenRefused

RUN, ADMIN = "run", "admin"


def all_scopes(given: Iterable[str]) -> frozenset[str]:
    """Return those of *given* that mean something here, and what they include: who may administer may run."""
    known = frozenset(given) & {RUN, ADMIN}
    return known | {RUN} if ADMIN in known else known


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return what *claims* allow.

    ``scope`` is one text, as RFC 9068 has it; ``scp`` is a text or a list, as vendors write it.

    Raises:
        TokenRefused: They allow nothing here, or in no known form.
    """
    named = claims.get("scope", claims.get("scp", ""))
    if "scope" not in claims and isinstance(named, list):
        words: list[Any] = cast("list[Any]", named)
    elif isinstance(named, str):
        words = [*named.split()]
    else:
        raise TokenRefused("the token's scope is not a text")
    found = all_scopes(word for word in words if isinstance(word, str))
    if not found:
        raise TokenRefused("the token lacks the scope 'run'", "insufficient_scope")
    return found
