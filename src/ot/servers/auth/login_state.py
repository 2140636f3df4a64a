"""LoginState: what is known of a login without asking anybody, for lists and health."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from ot.servers.auth.account import ServerAccount
from ot.servers.auth.record import TokenRecord
from ot.servers.auth.system_keyring import SystemKeyring
from ot.servers.auth.token_store import RecordUnreadable, TokenStore


@dataclass(frozen=True, slots=True)
class LoginState:
    """How a login is: ``expires_at`` is the access token's, ``renews`` whether a new one comes without a person."""

    state: Literal["logged in", "login needed"]
    why: str = ""
    expires_at: float | None = None
    scope: str = ""
    issuer: str = ""
    place: str = ""
    renews: bool = False


def login_state(account: ServerAccount, *, keyring: SystemKeyring | None = None) -> LoginState:
    """Return how the login of *account* is; it may block: call it in a thread."""
    store = TokenStore(account, keyring)
    needs_person = account.grant == "authorization_code"
    try:
        record = store.read()
    except RecordUnreadable as error:
        return LoginState("login needed" if needs_person else "logged in", str(error), renews=not needs_person)
    if record is None:
        if needs_person:
            return LoginState("login needed", "nobody has logged in yet")
        return LoginState("logged in", "its first call obtains a token", renews=True)
    return _state_of(record, store.place, needs_person)


def _state_of(record: TokenRecord, place: str, needs_person: bool) -> LoginState:
    renews = not needs_person or bool(record.refresh_token and not record.refused)
    ended = record.is_expired(time.time()) and not renews
    why = record.refused or ("the login has expired and cannot be renewed" if ended else "")
    state = "login needed" if ended or (record.refused and needs_person) else "logged in"
    return LoginState(state, why, record.expires_at, record.scope, record.issuer, place, renews)
