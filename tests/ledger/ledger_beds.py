"""Beds: a ledger of each kind, as several processes see it, with a clock that tests move."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ot.errors import LedgerUnavailable
from ot.execution.caller import Caller
from ot.execution.ledger import Effect
from ot.ledger.background_run import BackgroundRun
from ot.ledger.kept_ledger import KeptLedger
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.redis_ledger import RedisLedger
from ot.ledger.redis_place import RedisPlace
from ot.ledger.run_book import LEASE_SECONDS
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool
from ot.state.redis_connection import RedisConnection
from ot.state.state_keys import StateKeys
from pace import LOOK_SECONDS, PATIENCE

ADA, BOB = Caller("ada"), Caller("bob")
PAY = Tool("bank", "pay")
KEYS = StateKeys(["the key of all processes, 32 characters at least"])


def effect(run: str = "r1", call: int = 1, caller: Caller = ADA, start: int = 0, **arguments: Any) -> Effect:
    """Return a call on its way."""
    return Effect(caller, run, call, 3, PAY, arguments or {"amount": 5}, start=start)


def background(id: str = "b1", principal: str = "ada", created: float = 0.0) -> BackgroundRun:
    """Return what somebody asks for."""
    return BackgroundRun(id, principal, "bank.pay(amount=5)", created or time.time(), name="pay", groups=("staff",))


async def until(check: Callable[[], Awaitable[object]]) -> None:
    """Return once *check* returns something, or raises LedgerUnavailable no more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(LedgerUnavailable):
                if await check():
                    return
            await asyncio.sleep(LOOK_SECONDS)


class LedgerBed(ABC):
    """One place, and ledgers that use it as processes of their own."""

    def __init__(self) -> None:
        self.now = time.time()
        self._open: list[KeptLedger] = []
        self.ledger = self.process()

    def process(self) -> KeptLedger:
        """Return the ledger of one more process."""
        self._open.append(made := self._made())
        return made

    @abstractmethod
    def _made(self) -> KeptLedger: ...

    @abstractmethod
    async def let_the_lease_pass(self, id: str) -> None:
        """Have the start of run *id* beaten too long ago."""

    async def aclose(self) -> None:
        for ledger in self._open:
            await ledger.aclose()


class FileBed(LedgerBed):
    """The file of one user."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def _made(self) -> KeptLedger:
        return SqliteLedger(LedgerFile(self._path, clock=lambda: self.now))

    async def let_the_lease_pass(self, id: str) -> None:
        self.now += LEASE_SECONDS + 1


class RedisBed(LedgerBed):
    """The Redis of a team; each process has connections of its own."""

    def __init__(self, url: str, prefix: str = "onetool", *, replicas: int = 0, seconds: float = PATIENCE) -> None:
        self._url, self._prefix, self._replicas, self._seconds = url, prefix, replicas, seconds
        self._connections: list[RedisConnection] = []
        super().__init__()

    def _made(self) -> RedisLedger:
        return self.redis_ledger()

    def redis_ledger(self, keys: StateKeys = KEYS) -> RedisLedger:
        """Return the ledger of one more process, with *keys* of its own."""
        self._connections.append(connection := RedisConnection(self._url, answer_seconds=self._seconds))
        place = RedisPlace(connection, self._prefix, keys, replicas=self._replicas)
        return RedisLedger(place, clock=lambda: self.now)

    @property
    def client(self) -> Any:
        """A client of the same Redis, as an attacker or an operator has one."""
        return self._connections[0].client

    def key(self, kind: str, id: str = "") -> str:
        """Return a key of the ledger's."""
        return f"{self._prefix}:ledger:{kind}" + (f":{id}" if id else "")

    async def let_the_lease_pass(self, id: str) -> None:
        await self.client.delete(self.key("beat", id))

    async def aclose(self) -> None:
        await super().aclose()
        for connection in self._connections:
            await connection.aclose()
