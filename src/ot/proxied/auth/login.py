"""A login: drives the protocol library's own flow once, and keeps what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import parse_qs, urlsplit

from httpx2 import URL
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from ot.errors import LoginFailed, LoginRefused
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer
from ot.proxied.auth.provider_flow import TokensInHand, client_id_needed, drive
from ot.proxied.auth.system_keyring import SystemKeyring
from ot.proxied.auth.token_record import TokenRecord, TokenRecords
from ot.proxied.auth.token_store import RecordUnreadable, token_store
from ot.proxied.internal_addresses import AddressRule

type ShowAddress = Callable[[str], Awaitable[None]]
"""Takes the address that the person has to open."""

type ReceiveAnswer = Callable[[str], Awaitable[CallbackAnswer]]
"""Waits for the answer that carries the given state; raises TimeoutError."""


async def login(
    account: ServerAccount,
    show: ShowAddress,
    receive: ReceiveAnswer,
    *,
    scope: str = "",
    keyring: SystemKeyring | None = None,
) -> TokenRecord:
    """Log in at the server of *account*, keep the record, and return it; *scope* is asked for in addition.

    Raises:
        LoginFailed: It did not come to its end; an older record is as it was.
        LoginRefused: The person or the authorization server said no.
        AuthServerDown: The authorization server does not answer.
        ServerUnavailable: The server itself does not answer.
    """
    store = token_store(account, keyring)
    asked = await asyncio.to_thread(_scope, account, store, scope)
    record = await _Login(account, show, receive).record(asked)
    await asyncio.to_thread(_keep, account, store, record)
    return record


def _scope(account: ServerAccount, store: TokenRecords, more: str) -> str:
    """Return the scope to ask for: *more* and the last login's, so that a new login takes nothing away."""
    try:
        before = store.read() if more else None
    except RecordUnreadable:
        before = None
    return _union(account.scopes, before.scope.split() if before else (), more.split())


def _union(*several: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(scope for scopes in several for scope in scopes))


def _keep(account: ServerAccount, store: TokenRecords, record: TokenRecord) -> None:
    try:
        # Not while the old login is being renewed, which would be written over the new one.
        with store.lock():
            store.write(record)
    except (OSError, TimeoutError) as error:
        raise LoginFailed(account.server, f"its tokens could not be stored: {error}") from None


class _Login:
    """One way through the browser and back."""

    def __init__(self, account: ServerAccount, show: ShowAddress, receive: ReceiveAnswer) -> None:
        self._account = account
        self._show = show
        self._receive = receive
        self._state = ""
        self._held = TokensInHand(_own_client(account))
        self._provider = OAuthClientProvider(
            account.url,
            OAuthClientMetadata(
                client_name="OneTool",
                redirect_uris=[AnyUrl(account.redirect_uri)],
                token_endpoint_auth_method="none",
            ),
            self._held,
            redirect_handler=self._leave,
            callback_handler=self._return,
            client_metadata_url=_document(account),
        )

    async def record(self, scope: str) -> TokenRecord:
        """Return what came of it."""
        try:
            return await drive(self._account, self._provider, self._held, scope)
        except OAuthRegistrationError as error:
            needed = client_id_needed(self._account, self._provider)
            raise LoginFailed(needed.server, f"{needed.why}: {str(error)[:200]}", needed.advice) from None

    async def _leave(self, address: str) -> None:
        await AddressRule(*self._account.rule).check(URL(address))
        _choose_client_auth(self._provider)
        self._state = parse_qs(urlsplit(address).query).get("state", [""])[0]
        await self._show(address)

    async def _return(self) -> AuthorizationCodeResult:
        try:
            answer = await self._receive(self._state)
        except TimeoutError:
            raise LoginFailed(self._account.server, "nobody finished it in the browser in time") from None
        if answer.error:
            raise LoginRefused(self._account.server, f"the authorization server says {answer.error}")
        if answer.state != self._state:
            raise LoginRefused(self._account.server, "the answer belongs to another login")
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss)


def _own_client(account: ServerAccount) -> OAuthClientInformationFull | None:
    """Return the client that its user registered; without one, a document or a registration takes its place."""
    if not account.client_id:
        return None
    return OAuthClientInformationFull(
        client_id=account.client_id,
        client_secret=account.client_secret or None,
        redirect_uris=[AnyUrl(account.redirect_uri)],
        token_endpoint_auth_method="client_secret_basic" if account.client_secret else "none",
        issuer=account.issuer or None,
    )


def _document(account: ServerAccount) -> str | None:
    url = account.client_metadata_url
    if not url or account.client_id:
        return None
    if not is_valid_client_metadata_url(url):
        raise LoginFailed(account.server, "auth.client_metadata_url must be an https address with a path")
    return url


def _choose_client_auth(provider: OAuthClientProvider) -> None:
    """Send a client's secret as the authorization server takes it."""
    client, metadata = provider.context.client_info, provider.context.oauth_metadata
    offered = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
    if client and client.client_secret and client.token_endpoint_auth_method not in offered:
        client.token_endpoint_auth_method = "client_secret_post"
