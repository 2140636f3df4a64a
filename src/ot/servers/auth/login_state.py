"""LoginState: what is known of a login without asking anybody, for lists and health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ot.servers.auth.account import ServerAccount


@dataclass(frozen=True, slots=True)
class LoginState:
    """How a login is: ``expires_at`` is the access token's, ``renews`` whether a new one comes without a person."""

    state: Literal["logged in", "login needed", "not needed yet"]
    why: str = ""
    expires_at: float | None = None
    scope: str = ""
    issuer: str = ""
    place: str = ""
    renews: bool = False


def login_state(account: ServerAccount) -> LoginState:
    """Return how the login of *account* is; it may block: call it in a thread."""
    raise NotImplementedError
