"""RunWorker: carries out the runs that wait in a team's book, several at once, everybody's in turn."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.state.run_bell import RunBell
from ot.errors import LedgerUnavailable

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""How often it is looked for runs that nobody rang for: a ring was lost, or whoever carried them out is dead."""

type CarryOut = Callable[[str], Awaitable[object]]


class RunWorker:
    """Takes runs from the book, which says whose turn it is, and wakes up when the bell rings."""

    def __init__(self, book: PostgresLedger, bell: RunBell, look_seconds: float = LOOK_SECONDS) -> None:
        """Take runs from *book*."""
        self._book = book
        self._bell = bell
        self._look_seconds = look_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._ringing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        """It has rung, or a run has ended, since the book was looked into."""
        self.name = book.writer.name = f"{socket.gethostname()}#{os.getpid()}"
        self.waiting = 0
        """How many runs no worker had taken when it looked last."""

    @property
    def running(self) -> int:
        """How many runs it carries out now."""
        return len(self._tasks)

    async def work(self, carry_out: CarryOut, at_once: int) -> None:
        """Carry out at most *at_once* runs at the same time, half of them of one principal, until cancelled.

        Cancelled once, it takes no more and returns when those under way have ended; cancelled again, it leaves them
        to other workers.
        """
        try:
            with suppress(asyncio.CancelledError):
                while True:
                    self._news.clear()
                    if await self._take(carry_out, at_once):
                        self._listen()
                    await self._news.wait()
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            left = [*self._tasks, *filter(None, [self._ringing])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _take(self, carry_out: CarryOut, at_once: int) -> bool:
        """Begin what there is room for, and return whether there is still room."""
        free = at_once - len(self._tasks)
        taken: list[str] = []
        if free:
            with suppress(LedgerUnavailable):
                taken = await self._book.take_runs(free, share=max(1, at_once // 2))
                self.waiting = await self._book.count_waiting()
        for id in taken:
            task = asyncio.ensure_future(self._one(carry_out, id))
            self._tasks.add(task)
            task.add_done_callback(self._note_end)
        if len(taken) == free and self.waiting:
            await self._bell.submit("")  # for the others: this one has heard every ring so far
        return len(taken) < free

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._news.set()  # somebody may have had his share, and all places may have been taken

    def _listen(self) -> None:
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.ensure_future(self._bell.wait(self._look_seconds))
            self._ringing.add_done_callback(lambda _: self._news.set())

    async def _one(self, carry_out: CarryOut, id: str) -> None:
        try:
            await carry_out(id)
        except LedgerUnavailable as error:
            logger.warning("run %s goes on, or is reported, once the ledger is there again: %s", id, error)
        except Exception:
            logger.exception("background run %s was left behind", id)
