"""A logout: revokes the tokens where they were issued, then forgets the record."""

from __future__ import annotations

import asyncio

from ot.errors import LoginNeeded, ServerUnavailable
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.refresh import post_as_client
from ot.proxied.auth.system_keyring import SystemKeyring
from ot.proxied.auth.token_record import TokenRecord, TokenRecords
from ot.proxied.auth.token_store import RecordUnreadable, token_store

NOT_OFFERED = "its authorization server does not revoke tokens: they end when they expire"


async def logout(account: ServerAccount, *, keyring: SystemKeyring | None = None) -> str:
    """Forget the login of *account*, and return why its tokens could not be revoked as well, or nothing.

    Raises:
        LoginNeeded: There is no login.
    """
    return await asyncio.to_thread(_logout, account, token_store(account, keyring))


def _logout(account: ServerAccount, store: TokenRecords) -> str:
    with store.lock():
        try:
            record = store.read()
        except RecordUnreadable as error:
            store.delete()
            return str(error)
        if record is None:
            raise LoginNeeded(account.server, "nobody is logged in")
        why = _revoke(account, record)
        store.delete()
    return why


def _revoke(account: ServerAccount, record: TokenRecord) -> str:
    """Revoke both tokens, and return why that did not work, or nothing."""
    if not record.revocation_endpoint:
        return NOT_OFFERED
    # The refresh token first: with it, most servers end the access token, too.
    tokens = {"refresh_token": record.refresh_token, "access_token": record.access_token}
    for kind, token in tokens.items():
        form = {"token": token, "token_type_hint": kind}
        try:
            answer = post_as_client(account, record, record.revocation_endpoint, form) if token else None
        except ServerUnavailable as error:
            return error.why
        if answer is not None and answer.is_error:
            return f"its authorization server answered HTTP {answer.status_code}"
    return ""
