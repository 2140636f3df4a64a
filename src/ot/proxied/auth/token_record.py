"""TokenRecord: one login, complete: what a later process needs to use, renew and revoke it without asking anybody."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol, cast

type ClientAuth = Literal["none", "client_secret_basic", "client_secret_post"]

EARLY_SECONDS = 300.0
EARLY_SHARE = 0.2
"""A token is renewed this long before it expires, or in the last fifth of its life, whichever is later."""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The tokens of one principal at one server, and where they came from.

    The endpoints belong to it: a refresh token goes to the authorization server that issued it, and nowhere else.
    """

    access_token: str = field(repr=False)
    obtained_at: float
    expires_at: float | None = None
    """By the wall clock, since another process may read it; None where the authorization server did not say."""
    refresh_token: str = field(default="", repr=False)
    scope: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    client_auth: ClientAuth = "none"
    issuer: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""
    refused: str = ""
    """Why the authorization server will not renew it: asking again with the same token would only raise an alarm."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may show."""
        return tuple(text for text in (self.access_token, self.refresh_token, self.client_secret) if text)

    def is_expired(self, now: float) -> bool:
        """Return whether the access token is of no more use."""
        return self.expires_at is not None and now >= self.expires_at

    def is_due(self, now: float) -> bool:
        """Return whether the access token should be renewed, although it may still be good."""
        if self.expires_at is None:
            return False
        return now >= self.expires_at - min(EARLY_SECONDS, EARLY_SHARE * (self.expires_at - self.obtained_at))

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> TokenRecord | None:
        """Return the record that *data* holds, or nothing if it is malformed; keys of newer releases are left out."""
        given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        names = {entry.name for entry in fields(cls)}
        known = {key: value for key, value in given.items() if key in names and value is not None}
        is_sound = all(isinstance(value, _kinds(key)) for key, value in known.items())
        return cls(**known) if is_sound and {"access_token", "obtained_at"} <= known.keys() else None

    @classmethod
    def from_text(cls, text: str | bytes) -> TokenRecord | None:
        """Return the record that *text* holds as JSON, or nothing."""
        try:
            return cls.from_json(json.loads(text))
        except ValueError:
            return None


class TokenRecords(Protocol):
    """Where the record of one account is kept. Every method may block: call it in a thread."""

    @property
    def place(self) -> str:
        """Where the record is, or would be, for a person."""
        ...

    def read(self) -> TokenRecord | None:
        """Return the record, or nothing."""
        ...

    def write(self, record: TokenRecord) -> None:
        """Keep *record*: it is safe when this returns."""
        ...

    def delete(self) -> None:
        """Forget the record."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Keep everyone else from renewing this login meanwhile."""
        ...


type OpenTokenStore[Account] = Callable[[Account], TokenRecords]
"""Opens the place of an account's record."""


def _kinds(key: str) -> tuple[type, ...]:
    return (int, float) if key in ("obtained_at", "expires_at") else (str,)
