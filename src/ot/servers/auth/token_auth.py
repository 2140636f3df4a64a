"""TokenAuth: puts a login's access token on every request, and has it renewed in time; it never asks a person."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial

import httpx2

from ot.errors import AuthServerDown, LoginNeeded, ServerUnavailable
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.challenge import missing_scope
from ot.servers.auth.record import TokenRecord
from ot.servers.auth.renewal import NO_LOGIN, renewed
from ot.servers.auth.system_keyring import SystemKeyring
from ot.servers.auth.token_store import RecordsUnreachable, RecordUnreadable, token_store

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
            yield request  # the token is for nobody else
            return
        self._note(None)
        record, refusal = await self._current()
        response = yield _signed(request, record)
        for _ in range(RENEWALS):
            if response.status_code != 401 or refusal:
                break
            record, refusal = await self._after_refusal(record)
            if refusal:
                break
            response = yield _signed(request, record)
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
            record = await _in_thread(self._store.read_accepted)
        except RecordsUnreachable as error:
            return None, AuthServerDown(self._account.server, str(error))
        except (RecordUnreadable, OSError) as error:
            return None, LoginNeeded(self._account.server, str(error))
        if record is None:
            return await self._first()
        now = time.time()
        if record.is_expired(now):
            return await self._renewed(record)
        if record.is_due(now) and self._may_renew(record):
            return await self._renewed_early(record)
        return record, None

    async def _first(self) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        if self._account.grant == "client_credentials":
            return await self._renewed(None)
        return None, LoginNeeded(self._account.server, NO_LOGIN)

    def _may_renew(self, record: TokenRecord) -> bool:
        """Return whether nobody does it already, and it has a chance: the old token is still good meanwhile."""
        return not self.is_renewing and not record.refused and time.monotonic() >= self._not_before

    async def _renewed_early(self, record: TokenRecord) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        new, refusal = await self._renewed(record)
        if refusal:
            logger.warning("the login of %s was not renewed early: %s", self._account.server, refusal.why)
            self._not_before = time.monotonic() + EARLY_PAUSE_SECONDS
        return (record if refusal else new), None

    async def _after_refusal(self, record: TokenRecord | None) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        """Return another token than that of *record*, which the server refused."""
        if record and record.access_token == self._useless:
            return record, LoginNeeded(self._account.server, "it refuses the tokens of this login")
        return await self._renewed(record)

    async def _renewed(self, record: TokenRecord | None) -> tuple[TokenRecord | None, ServerUnavailable | None]:
        used = record.access_token if record else ""
        try:
            new = await self._shared_renewal(used)
            if new.access_token == used:  # it was under way for an older one
                new = await self._shared_renewal(used)
        except ServerUnavailable as refusal:
            return record, refusal
        except Exception as error:  # whatever it is, raising it would end the session
            logger.exception("the login of %s could not be renewed", self._account.server)
            return record, LoginNeeded(self._account.server, f"it could not be renewed: {type(error).__name__}")
        return new, None

    async def _shared_renewal(self, used: str) -> TokenRecord:
        """Return the outcome of the one renewal that is under way, which no cancelled call takes with it."""
        if self._renewing is None:
            # In a thread that the process waits for at its end: an answer that nobody writes down is a login lost.
            work = partial(renewed, self._account, self._store, used)
            self._renewing = asyncio.get_running_loop().run_in_executor(None, work)
            self._renewing.add_done_callback(self._on_renewed)
        return await asyncio.shield(self._renewing)

    def _on_renewed(self, done: asyncio.Future[TokenRecord]) -> None:
        self._renewing = None
        # Nobody may be left to take the error when all who waited were cancelled.
        _ = done.cancelled() or done.exception()


async def _in_thread[T](work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)


def _signed(request: httpx2.Request, record: TokenRecord | None) -> httpx2.Request:
    if record:
        request.headers["Authorization"] = f"Bearer {record.access_token}"
    return request


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
