"""Beds: a ledger as several processes see it, with a clock that tests move."""

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
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.run_book import LEASE_SECONDS, KeptLedger
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool
from pace import LOOK_SECONDS, PATIENCE

ADA, BOB = Caller("ada"), Caller("bob")
PAY = Tool("bank", "pay")


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
