"""SharedTokenStore: the record of one account where all replicas of a server find it, sealed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Protocol

from onetool_team.state.shared_state import SharedState, StateUnavailable
from onetool_team.state.state_keys import NotSealed, StateKeys
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_record import OpenTokenStore, TokenRecord
from ot.proxied.auth.token_store import LOCK_SECONDS, RecordsUnreachable, RecordUnreadable

MARGIN_SECONDS = 10.0
"""How much longer than the shared state itself a thread waits for its answer."""


class LoginRecords(Protocol):
    """Keeps the records of all accounts, as text; every method raises StateUnavailable."""

    async def read(self, account: ServerAccount) -> bytes | None:
        """Return the record of *account*, or nothing.

        Raises:
            NotSealed: It was not sealed with our keys.
        """
        ...

    async def write(self, account: ServerAccount, record: bytes) -> None:
        """Keep the record of *account*."""
        ...

    async def delete(self, account: ServerAccount) -> None:
        """Forget the record of *account*."""
        ...

    def lock(self, account: ServerAccount, seconds: float) -> AbstractAsyncContextManager[None]:
        """Keep everyone else from renewing the login of *account* in the block, at most *seconds*."""
        ...


class StateRecords:
    """Records in the state that replicas share, for those who have no PostgreSQL."""

    def __init__(self, state: SharedState, keys: StateKeys) -> None:
        """Keep them in *state*, sealed with *keys*."""
        self._state = state
        self._keys = keys

    async def read(self, account: ServerAccount) -> bytes | None:
        """Return the record of *account*, or nothing."""
        sealed = await self._state.get(key := self._key(account))
        return None if sealed is None else self._keys.unseal(key, sealed)

    async def write(self, account: ServerAccount, record: bytes) -> None:
        """Keep the record of *account*."""
        key = self._key(account)
        await self._state.set(key, self._keys.seal(key, record))

    async def delete(self, account: ServerAccount) -> None:
        """Forget the record of *account*."""
        await self._state.delete(self._key(account))

    def lock(self, account: ServerAccount, seconds: float) -> AbstractAsyncContextManager[None]:
        """Keep everyone else from renewing the login of *account* in the block."""
        return self._state.lock(self._key(account), seconds)

    def _key(self, account: ServerAccount) -> str:
        return f"login:{self._keys.hide(account.key)}"


def shared_token_stores(records: LoginRecords) -> OpenTokenStore[ServerAccount]:
    """Return the opener of accounts' stores; call it in the event loop that *records* are used in."""
    loop = asyncio.get_running_loop()
    return lambda account: SharedTokenStore(account, records, loop)


class SharedTokenStore:
    """The record of one account among those of all. Every method blocks: call it in a thread of the loop's process.

    The lock is the same for all replicas: of several that find a token expired, one renews it.
    """

    place = "the shared state"

    def __init__(self, account: ServerAccount, records: LoginRecords, loop: asyncio.AbstractEventLoop) -> None:
        """Read nothing yet; *loop* is where *records* are used."""
        self._account = account
        self._records = records
        self._loop = loop

    def read(self) -> TokenRecord | None:
        """Return the record, or nothing; its secrets are redacted from this moment.

        Raises:
            RecordUnreadable: There is one, but it was not sealed with our keys.
            RecordsUnreachable: The shared state does not answer.
        """
        try:
            text = self._wait(self._records.read(self._account))
        except NotSealed as error:
            raise RecordUnreadable(f"the shared state: {error}") from None
        return None if text is None else self._account.note(TokenRecord.from_text(text))

    def write(self, record: TokenRecord) -> None:
        """Keep *record*.

        Raises:
            RecordsUnreachable: The shared state did not take it.
        """
        self._account.note(record)
        self._wait(self._records.write(self._account, json.dumps(record.to_json()).encode()))

    def delete(self) -> None:
        """Forget the record."""
        self._wait(self._records.delete(self._account))

    @contextmanager
    def lock(self, seconds: float = LOCK_SECONDS) -> Generator[None]:
        """Keep every other replica and thread from renewing this login meanwhile.

        Raises:
            TimeoutError: Another one does not let go of it.
            RecordsUnreachable: The shared state does not answer.
        """
        lock = self._records.lock(self._account, LOCK_SECONDS)
        self._wait(_enter(lock, seconds), seconds)
        try:
            yield
        finally:
            self._wait(_leave(lock))

    def _wait[T](self, asked: Coroutine[Any, Any, T], seconds: float = 0.0) -> T:
        """Return the result of a coroutine on the loop, from another thread."""
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
