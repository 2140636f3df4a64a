"""Asks the authorization server that issued a login for its next tokens, and tells its refusal from its absence."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

import httpx2

from ot.errors import AuthServerDown, LoginNeeded
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.guarded_client import GuardedClient, ask
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused
from ot_sdk.network import retry_seconds
from ot_sdk.redaction import Redactor

SECONDS = 15.0
TRY_AGAIN = frozenset({408, 425, 429})
"""Refusals that say nothing about the login."""
REASONS = {
    "invalid_grant": "the login has expired or was revoked",
    "invalid_client": "the authorization server does not know the client any more",
    "unauthorized_client": "the authorization server does not let this client renew a login",
    "invalid_scope": "the authorization server does not give the scopes of the login any more",
}


def refresh_record(account: ServerAccount, record: TokenRecord) -> TokenRecord:
    """Return the record with new tokens; as ``post_as_client``, it blocks.

    Raises:
        AuthServerDown: It did not answer, or not to the point; the login may still be good.
        LoginNeeded: It will not renew the login.
    """
    server = account.server
    answer = post_as_client(account, record, record.token_endpoint, _refresh_form(record))
    tokens = _tokens_in(answer)
    if answer.status_code == 200 and tokens.get("access_token"):
        return with_tokens(record, tokens)
    if refusal := _refusal(answer, record):
        raise LoginNeeded(server, refusal)
    pause = retry_seconds(answer.headers) or 0.0
    raise AuthServerDown(server, f"it answered HTTP {answer.status_code} without a token", retry_seconds=pause)


def with_tokens(record: TokenRecord, tokens: dict[str, Any]) -> TokenRecord:
    """Return *record* with what a token response brought; what it left out is as it was."""
    now = time.time()
    return replace(
        record,
        access_token=str(tokens["access_token"]),
        refresh_token=str(tokens.get("refresh_token") or record.refresh_token),
        scope=str(tokens.get("scope") or record.scope),
        obtained_at=now,
        expires_at=expiry(now, tokens.get("expires_in")),
        refused="",
    )


def expiry(now: float, seconds: Any) -> float | None:
    """Return the expiry of a token that lives for *seconds*, which some servers write as text."""
    try:
        return now + max(0.0, float(seconds))
    except (TypeError, ValueError):
        return None


def post_as_client(account: ServerAccount, record: TokenRecord, address: str, form: dict[str, str]) -> httpx2.Response:
    """Return the answer to *form*, sent with the credentials of the record's client.

    It blocks, and needs a thread without an event loop.

    Raises:
        AuthServerDown: There was none.
        LoginNeeded: It cannot be sent there.
    """
    if record.client_auth == "client_secret_basic" and record.client_secret:
        pair = httpx2.BasicAuth(quote(record.client_id, safe=""), quote(record.client_secret, safe=""))
    else:
        pair = None
        form = {**form, "client_id": record.client_id}
        if record.client_secret:
            form["client_secret"] = record.client_secret
    try:
        return asyncio.run(_post(account, address, form, pair))
    except (httpx2.HTTPError, Refused) as error:
        words = str(error) or type(error).__name__
        raise AuthServerDown(account.server, f"no answer from {httpx2.URL(address).host}: {words}") from None
    except (httpx2.InvalidURL, ValueError):
        raise LoginNeeded(account.server, "the login names no address where it can be renewed") from None


async def _post(
    account: ServerAccount, address: str, form: dict[str, str], pair: httpx2.BasicAuth | None
) -> httpx2.Response:
    # No redirect is followed: the form would go wherever it points.
    rule = AddressRule(*account.rule)
    async with GuardedClient(rule, timeout=SECONDS, auth=pair, follow_redirects=False) as client:
        return await ask(
            client, client.build_request("POST", address, data=form, headers={"Accept": "application/json"})
        )


def _refresh_form(record: TokenRecord) -> dict[str, str]:
    form = {"grant_type": "refresh_token", "refresh_token": record.refresh_token}
    return form | ({"resource": record.resource} if record.resource else {})


def _tokens_in(answer: httpx2.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _refusal(answer: httpx2.Response, record: TokenRecord) -> str:
    """Return why the login will not be renewed, or nothing where the answer says nothing about it."""
    status = answer.status_code
    if status in TRY_AGAIN or not 300 <= status < 500:
        return ""
    said = Redactor(("login", secret) for secret in record.secrets).text(str(_tokens_in(answer).get("error", "")))[:60]
    if said in ("temporarily_unavailable", "server_error", "slow_down"):
        return ""
    return REASONS.get(said) or f"the authorization server answered HTTP {status}{f': {said}' if said else ''}"
