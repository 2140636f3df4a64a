"""DocketQueue: tells a team's workers of runs that wait in the book."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

from ot.state.redis_connection import REDIS_FAILURES
from ot.team.docket.run_docket import TASK, RunDocket

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 1.0
AT_ONCE = 32
"""How many runs are put on the docket at the same time: each holds a connection meanwhile."""


class DocketQueue:
    """Puts run ids on the docket, as a doorbell: what it fails to put there, workers find in the book."""

    def __init__(self, url: str, prefix: str) -> None:
        """Use Redis at *url*, under *prefix*; it is connected to when first needed."""
        self._docket = RunDocket(url, prefix)
        self._docket.register(_carry_out_by_workers, names=[TASK])
        self._stack: AsyncExitStack | None = None
        self._opening = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)

    async def submit(self, id: str) -> None:
        """Have the run *id* of the book carried out; one that is on the docket already stays what it is."""
        try:
            async with self._places, asyncio.timeout(ANSWER_SECONDS):
                await self._open()
                await self._docket.add(TASK, key=id)()
        except REDIS_FAILURES as error:
            # To refuse now would be wrong: it is in the book, and a worker will look there.
            logger.warning(
                "run %s is not on the docket, and waits for a worker to find it: %s", id, type(error).__name__
            )

    async def _open(self) -> None:
        async with self._opening:
            if self._stack is None:
                stack = AsyncExitStack()
                await stack.enter_async_context(self._docket)
                self._stack = stack

    async def aclose(self) -> None:
        """Let go of connections."""
        if self._stack is not None:
            await self._stack.aclose()
            self._stack = None


async def _carry_out_by_workers() -> None:
    """Stand for the task of the workers, which this process does not carry out."""
    raise NotImplementedError
