"""LocalQueue: background runs of one user, carried out in the server's own process, and ended with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from contextlib import suppress
from contextvars import Context

from ot.background.carrying_out import SERVER_ENDED, RunCarrier
from ot.errors import LedgerUnavailable

logger = logging.getLogger(__name__)

END_SECONDS = 5.0
"""How long the reports of runs may take that end with the server."""


class LocalQueue:
    """Carries out a number of runs at once; the others wait for their turn."""

    def __init__(self, carrier: RunCarrier, at_once: int) -> None:
        """Carry out *at_once* runs at the same time, each by *carrier*."""
        self._carrier = carrier
        self._places = asyncio.Semaphore(at_once)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def ids(self) -> Container[str]:
        """The runs that have not ended."""
        return self._tasks.keys()

    async def submit(self, id: str) -> None:
        """Have the run carried out as soon as there is room; it outlives the call that asked for it."""
        # Nothing of that call's own, its clock least of all, may reach the run.
        task = asyncio.get_running_loop().create_task(self._carry_out(id), context=Context())
        self._tasks[id] = task
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    async def _carry_out(self, id: str) -> None:
        try:
            async with self._places:
                await self._carrier.carry_out(id)
        except Exception:
            logger.exception("background run %s was left behind", id)

    async def aclose(self) -> None:
        """End what has not ended, and report on it."""
        tasks = dict(self._tasks)
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values())
        with suppress(LedgerUnavailable, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                for id in tasks:
                    await self._carrier.stop(id, SERVER_ENDED)
