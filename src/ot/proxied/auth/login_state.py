"""LoginState: what is known of a login without asking anybody, for lists and health."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.system_keyring import SystemKeyring
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import RecordsUnreachable, RecordUnreadable, token_store


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

    @property
    def is_needed(self) -> bool:
        """Whether only a person can help."""
        return self.state == "login needed"

    @property
    def until(self) -> str:
        """How long its token is good, in words; nothing where nobody said."""
        if self.expires_at is None:
            return ""
        at = datetime.fromtimestamp(self.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return f"token until {at}, " + ("renewed by itself" if self.renews else "then a new login")


def login_state(account: ServerAccount, *, keyring: SystemKeyring | None = None) -> LoginState:
    """Return the login state of *account*; it may block: call it in a thread."""
    store = token_store(account, keyring)
    needs_person = account.grant == "authorization_code"
    try:
        record = account.accept(store.read())
    except (RecordUnreadable, RecordsUnreachable) as error:
        return LoginState("login needed" if needs_person else "logged in", str(error), renews=not needs_person)
    if record is None:
        if needs_person:
            return LoginState("login needed", "nobody has logged in yet")
        return LoginState("logged in", "its first call obtains a token", renews=True)
    return _state_of(record, store.place, needs_person)


def login_states(accounts: Mapping[str, ServerAccount | None]) -> dict[str, LoginState]:
    """Return the login states by server, for those that have one; it may block: call it in a thread."""
    return {name: login_state(account) for name, account in accounts.items() if account}


def _state_of(record: TokenRecord, place: str, needs_person: bool) -> LoginState:
    renews = not needs_person or bool(record.refresh_token and not record.refused)
    ended = record.is_expired(time.time()) and not renews
    why = record.refused or ("the login has expired and cannot be renewed" if ended else "")
    state = "login needed" if ended or (record.refused and needs_person) else "logged in"
    return LoginState(state, why, record.expires_at, record.scope, record.issuer, place, renews)
