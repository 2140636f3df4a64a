"""TokenAuth: puts a login's access token on every request, and has it renewed in time; it never asks a person."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial

import httpx2

from ot.errors import AuthServerDown, LoginNeeded, ServerUnavailable
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.challenge import missing_scope
from ot.proxied.auth.refresh import refresh_record
from ot.proxied.auth.system_keyring import SystemKeyring
from ot.proxied.auth.token_record import TokenRecord, TokenRecords
from ot.proxied.auth.token_store import RecordsUnreachable, RecordUnreadable, token_store

NO_LOGIN = "nobody has logged in yet"


def renew(account: ServerAccount, store: TokenRecords, used: str) -> TokenRecord:
    """Return a record whose token is not *used*: another process's new one, else one that is obtained now.

    It blocks, and must be let end: tokens that were issued and not written are a login lost.

    Raises:
        LoginNeeded: Only a person can help.
        AuthServerDown: The authorization server does not answer; the record is as it was.
    """
    try:
        with store.lock():
            return _renew_alone(account, store, used)
    except TimeoutError as error:
        raise AuthServerDown(account.server, str(error)) from None
    except RecordsUnreachable as error:
        raise AuthServerDown(account.server, str(error)) from None
    except OSError as error:
        raise AuthServerDown(account.server, f"its new tokens could not be stored ({error})") from None
    except RecordUnreadable as error:
        raise LoginNeeded(account.server, str(error)) from None


def _renew_alone(account: ServerAccount, store: TokenRecords, used: str) -> TokenRecord:
    record = account.accept(store.read())
    if record and record.access_token != used and not record.is_expired(time.time()):
        return record
    if account.grant == "client_credentials":
        from ot.proxied.auth.client_credentials import obtain  # noqa: PLC0415 - imports the protocol's library

        new = obtain(account)
    else:
        new = _refresh(account, store, record)
    store.write(new)
    return new


def _refresh(account: ServerAccount, store: TokenRecords, record: TokenRecord | None) -> TokenRecord:
    if record is None:
        raise LoginNeeded(account.server, NO_LOGIN)
    if record.refused or not record.refresh_token:
        raise LoginNeeded(account.server, record.refused or "the login has expired and cannot be renewed")
    # What cannot be written now could not be written afterwards, when the old refresh token is worth nothing.
    store.write(record)
    try:
        return refresh_record(account, record)
    except LoginNeeded as error:
        kept = account.accept(store.read())
        if kept and kept.access_token != record.access_token:
            return kept  # a new login, or another's renewal, came while this one took longer than the lock lasts
        if kept:
            store.write(replace(record, refused=error.why))
        raise


logger = logging.getLogger(__name__)

RENEWALS = 2
"""How many tokens one request may try; a second new one only where the first expired on the way."""
EARLY_PAUSE_SECONDS = 10.0
"""After an early renewal failed, while the old token is still good."""

type NoteRefusal = Callable[[ServerUnavailable | None], None]
"""Takes why the request under way was refused: LoginNeeded or AuthServerDown; None at its beginning."""


class TokenAuth(httpx2.Auth):
    """The login of one account on the requests of one connection.

    Nothing is raised from here: the protocol's library would take the session for closed. A request that has no good
    token is sent all the same, the server's refusal goes back as it came, and *note* has heard the reason.
    """

    def __init__(self, account: ServerAccount, note: NoteRefusal, keyring: SystemKeyring | None = None) -> None:
        """Read nothing yet; *note* hears why a request is refused."""
        self._account = account
        self._note = note
        self._store = token_store(account, keyring)
        self._origin = _origin(httpx2.URL(account.url))
        self._renewing: asyncio.Future[TokenRecord] | None = None
        self._not_before = 0.0
        self._useless = ""
        """A token that was refused although it was new: another new one would be, too."""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send *request* with the token, once more with a renewed one where it is refused."""
        if _origin(request.url) != self._origin:
            yield request  # the token is for this server only
            return
        self._note(None)
        record, refusal = await self._current()
        response = yield _sign(request, record)
        for _ in range(RENEWALS):
            if response.status_code != 401 or refusal:
                break
            record, refusal = await self._after_refusal(record)
            if refusal:
                break
            response = yield _sign(request, record)
            if response.status_code == 401 and record and not record.is_expired(time.time()):
                self._useless = record.access_token
                refusal = LoginNeeded(self._account.server, "it refuses the tokens of this login")
        self._conclude(response, refusal)

    def _conclude(self, response: httpx2.Response, refusal: ServerUnavailable | None) -> None:
        if response.status_code == 401:
            self._note(refusal or LoginNeeded(self._account.server, "it refuses the tokens of this login"))
        elif response.status_code == 403 and (scope := missing_scope(response.headers)):
            why = f"the login does not cover the scope '{scope}'"
            self._note(LoginNeeded(self._account.server, why, scope))

    @property
    def is_renewing(self) -> bool:
        """Whether a new token is on its way."""
        return self._renewing is not None

    # ---------------------------------------------------------------- which token

    async def _current(self) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        """Return the record to use, renewed if that is due, and why it is of no use."""
        try:
            record = self._account.accept(await asyncio.to_thread(self._store.read))
        except RecordsUnreachable as error:
            return None, AuthServerDown(self._account.server, str(error))
        except (RecordUnreadable, OSError) as error:
            return None, LoginNeeded(self._account.server, str(error))
        if record is None:
            return await self._first()
        now = time.time()
        if record.is_expired(now):
            return await self._renew(record)
        if record.is_due(now) and self._may_renew(record):
            return await self._renew_early(record)
        return record, None

    async def _first(self) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        if self._account.grant == "client_credentials":
            return await self._renew(None)
        return None, LoginNeeded(self._account.server, NO_LOGIN)

    def _may_renew(self, record: TokenRecord) -> bool:
        """Return whether nobody does it already, and it has a chance: the old token is still good meanwhile."""
        return not self.is_renewing and not record.refused and time.monotonic() >= self._not_before

    async def _renew_early(self, record: TokenRecord) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        new, refusal = await self._renew(record)
        if refusal:
            logger.warning("the login of %s was not renewed early: %s", self._account.server, refusal.why)
            self._not_before = time.monotonic() + EARLY_PAUSE_SECONDS
        return (record if refusal else new), None

    async def _after_refusal(self, record: TokenRecord | None) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        """Return another token than that of *record*, which the server refused."""
        if record and record.access_token == self._useless:
            return record, LoginNeeded(self._account.server, "it refuses the tokens of this login")
        return await self._renew(record)

    async def _renew(self, record: TokenRecord | None) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        used = record.access_token if record else ""
        try:
            new = await self._share_renewal(used)
            if new.access_token == used:  # it was under way for an older one
                new = await self._share_renewal(used)
        except ServerUnavailable as refusal:
            return record, refusal
        except Exception as error:  # whatever it is, raising it would end the session
            logger.exception("the login of %s could not be renewed", self._account.server)
            return record, LoginNeeded(self._account.server, f"it could not be renewed: {type(error).__name__}")
        return new, None

    async def _share_renewal(self, used: str) -> TokenRecord:
        """Return the outcome of the one renewal that is under way, which no cancelled call takes with it."""
        if self._renewing is None:
            # In a thread that the process waits for at its end: an unsaved answer is a lost login.
            work = partial(renew, self._account, self._store, used)
            self._renewing = asyncio.get_running_loop().run_in_executor(None, work)
            self._renewing.add_done_callback(self._on_renewed)
        return await asyncio.shield(self._renewing)

    def _on_renewed(self, done: asyncio.Future[TokenRecord]) -> None:
        self._renewing = None
        # Nobody may be left to take the error when all who waited were cancelled.
        _ = done.cancelled() or done.exception()


def _sign(request: httpx2.Request, record: TokenRecord | None) -> httpx2.Request:
    if record:
        request.headers["Authorization"] = f"Bearer {record.access_token}"
    return request


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
