"""SharedTokenStore: the record of one account where all replicas of a server find it, encrypted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from ot.servers.auth.account import ServerAccount
from ot.servers.auth.record import OpenTokenStore, TokenRecord
from ot.servers.auth.token_store import LOCK_SECONDS, RecordsUnreachable, RecordUnreadable
from ot.state.shared_state import SharedState, StateUnavailable
from ot.state.state_keys import NotSealed, StateKeys

MARGIN_SECONDS = 10.0
"""How much longer than the shared state itself a thread waits for its answer."""


def shared_token_stores(state: SharedState, keys: StateKeys) -> OpenTokenStore[ServerAccount]:
    """Return what opens the store of an account; to be called in the event loop that *state* is used in."""
    loop = asyncio.get_running_loop()
    return lambda account: SharedTokenStore(account, state, keys, loop)


class SharedTokenStore:
    """The record of one account in the shared state. Every method blocks: call it in a thread of the loop's process.

    The lock is the same for all replicas: of several that find a token expired, one renews it.
    """

    place = "the shared state"

    def __init__(
        self, account: ServerAccount, state: SharedState, keys: StateKeys, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Read nothing yet; *loop* is where *state* is used."""
        self._account = account
        self._state = state
        self._keys = keys
        self._loop = loop
        self._key = f"login:{keys.hide(account.key)}"

    def read(self) -> TokenRecord | None:
        """Return the record, or nothing; its secrets are redacted from this moment.

        Raises:
            RecordUnreadable: There is one, but it was not sealed with our keys.
            RecordsUnreachable: The shared state does not answer.
        """
        sealed = self._wait(self._state.get(self._key))
        if sealed is None:
            return None
        try:
            return self._note(TokenRecord.from_text(self._keys.unseal(self._key, sealed)))
        except NotSealed as error:
            raise RecordUnreadable(f"the shared state: {error}") from None

    def read_accepted(self) -> TokenRecord | None:
        """Return the record, unless it was made with a client or at an issuer that the settings no longer name.

        Raises:
            RecordUnreadable: There is one, but it was not sealed with our keys.
            RecordsUnreachable: The shared state does not answer.
        """
        record = self.read()
        return record if record and self._account.accepts(record) else None

    def write(self, record: TokenRecord) -> None:
        """Keep *record*.

        Raises:
            RecordsUnreachable: The shared state did not take it.
        """
        self._note(record)
        data = json.dumps(record.to_json()).encode()
        self._wait(self._state.set(self._key, self._keys.seal(self._key, data)))

    def delete(self) -> None:
        """Forget the record."""
        self._wait(self._state.delete(self._key))

    @contextmanager
    def lock(self, seconds: float = LOCK_SECONDS) -> Generator[None]:
        """Keep every other replica and thread from renewing this login meanwhile.

        Raises:
            TimeoutError: Another one does not let go of it.
            RecordsUnreachable: The shared state does not answer.
        """
        lock = self._state.lock(self._key, LOCK_SECONDS)
        self._wait(_enter(lock, seconds), seconds)
        try:
            yield
        finally:
            self._wait(_leave(lock))

    def _note(self, record: TokenRecord | None) -> TokenRecord | None:
        if record:
            account = self._account
            account.issued.add(account.key, f"login of {account.server}", record.secrets)
        return record

    def _wait[T](self, asked: Coroutine[Any, Any, T], seconds: float = 0.0) -> T:
        """Return what the loop comes to, from a thread beside it."""
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return answer.result(seconds + MARGIN_SECONDS)
        except StateUnavailable as error:
            raise RecordsUnreachable(str(error)) from None
        except TimeoutError:
            if answer.done():
                raise
            answer.cancel()
            raise RecordsUnreachable("the shared state does not answer") from None


async def _enter(lock: AbstractAsyncContextManager[None], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await lock.__aenter__()
    except TimeoutError:
        raise TimeoutError(f"another replica has been renewing the login for {seconds:g} s") from None


async def _leave(lock: AbstractAsyncContextManager[None]) -> None:
    await lock.__aexit__(None, None, None)
