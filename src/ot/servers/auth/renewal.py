"""Renews a login once, however many calls, threads and processes find at the same time that it has expired."""

from __future__ import annotations

import time
from dataclasses import replace

from ot.errors import AuthServerDown, LoginNeeded
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.record import TokenRecord, TokenRecords
from ot.servers.auth.refresh import refreshed
from ot.servers.auth.token_store import RecordsUnreachable, RecordUnreadable

NO_LOGIN = "nobody has logged in yet"


def renewed(account: ServerAccount, store: TokenRecords, used: str) -> TokenRecord:
    """Return a record whose token is not *used*: another process's new one, else one that is obtained now.

    It blocks, and must be let end: tokens that were issued and not written are a login lost.

    Raises:
        LoginNeeded: Only a person can help.
        AuthServerDown: The authorization server does not answer; the record is as it was.
    """
    try:
        with store.locked():
            return _renewed_alone(account, store, used)
    except TimeoutError as error:
        raise AuthServerDown(account.server, str(error)) from None
    except RecordsUnreachable as error:
        raise AuthServerDown(account.server, str(error)) from None
    except OSError as error:
        raise AuthServerDown(account.server, f"its new tokens could not be stored ({error})") from None
    except RecordUnreadable as error:
        raise LoginNeeded(account.server, str(error)) from None


def _renewed_alone(account: ServerAccount, store: TokenRecords, used: str) -> TokenRecord:
    record = store.read_accepted()
    if record and record.access_token != used and not record.is_expired(time.time()):
        return record
    if account.grant == "client_credentials":
        from ot.servers.auth.client_credentials import obtained  # noqa: PLC0415 - imports the protocol's library

        new = obtained(account)
    else:
        new = _refreshed(account, store, record)
    store.write(new)
    return new


def _refreshed(account: ServerAccount, store: TokenRecords, record: TokenRecord | None) -> TokenRecord:
    if record is None:
        raise LoginNeeded(account.server, NO_LOGIN)
    if record.refused or not record.refresh_token:
        raise LoginNeeded(account.server, record.refused or "the login has expired and cannot be renewed")
    # What cannot be written now could not be written afterwards, when the old refresh token is worth nothing.
    store.write(record)
    try:
        return refreshed(account, record)
    except LoginNeeded as error:
        kept = store.read_accepted()
        if kept and kept.access_token != record.access_token:
            return kept  # a new login, or another's renewal, came while this one took longer than the lock lasts
        if kept:
            store.write(replace(record, refused=error.why))
        raise
