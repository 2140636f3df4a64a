"""RunWorker: carries out the runs that are on a team's docket, several at once."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from docket import CurrentExecution, Worker
from docket.execution import Execution

from ot.errors import LedgerUnavailable
from ot.state.redis_connection import REDIS_FAILURES
from ot.state.shared_state import SharedState, StateUnavailable
from ot.team.docket.docket_queue import DocketQueue
from ot.team.docket.run_docket import TASK, RunDocket

logger = logging.getLogger(__name__)

type CarryOut = Callable[[str], Awaitable[object]]
type LeftBehind = Callable[[], Awaitable[Sequence[str]]]
LOOK_KEY = "background:look"


@dataclass(frozen=True, slots=True)
class WorkerPace:
    """How quickly a worker notices things."""

    redelivery_seconds: float = 5.0
    """How long a worker may be silent before the docket gives its runs to another; the book decides who goes on."""
    look_seconds: float = 10.0
    """How often one of the workers looks into the book for runs that are not on the docket."""
    poll_seconds: float = 0.25
    reconnect_seconds: float = 1.0


class RunWorker:
    """Takes run ids off the docket; whether and how a run goes on is for the book to say."""

    def __init__(
        self,
        docket: RunDocket,
        queue: DocketQueue,
        left_behind: LeftBehind,
        state: SharedState,
        pace: WorkerPace | None = None,
    ) -> None:
        """Work on *docket*, and put the runs on *queue* that are *left_behind*."""
        self._docket = docket
        self._queue = queue
        self._left_behind = left_behind
        self._state = state
        self._pace = pace or WorkerPace()
        self.name = f"{socket.gethostname()}#{os.getpid()}"
        self.running = 0
        """How many runs it carries out now."""
        self.waiting = 0
        """How many runs no worker had taken when it looked last."""

    async def work(self, carry_out: CarryOut, at_once: int) -> None:
        """Carry out at most *at_once* runs at the same time, until cancelled.

        Cancelled once, it takes no more and returns when those under way have ended; cancelled again, it leaves them
        to other workers.
        """

        async def task(execution: Execution = CurrentExecution()) -> None:  # noqa: B008 - how the library wants it
            await self._one(carry_out, execution.key)

        self._docket.register(task, names=[TASK])
        logging.getLogger("docket").setLevel(logging.WARNING)  # else it tells of each run, which the book knows
        pace = self._pace
        async with self._docket:
            looking = asyncio.ensure_future(self._look())
            worker = Worker(
                self._docket,
                name=self.name,
                concurrency=at_once,
                redelivery_timeout=timedelta(seconds=pace.redelivery_seconds),
                reconnection_delay=timedelta(seconds=pace.reconnect_seconds),
                minimum_check_interval=timedelta(seconds=pace.poll_seconds),
                schedule_automatic_tasks=False,
                fallback_task=_drop,
            )
            try:
                async with worker:
                    await worker.run_forever()
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)

    async def _one(self, carry_out: CarryOut, id: str) -> None:
        self.running += 1
        try:
            await carry_out(id)
        except LedgerUnavailable as error:
            logger.warning("run %s goes on, or is reported, once the ledger is there again: %s", id, error)
        finally:
            self.running -= 1

    async def _look(self) -> None:
        """Put runs on the docket that are in the book alone: whoever added them died, or the docket was lost."""
        while True:
            await asyncio.sleep(self._pace.look_seconds)
            with suppress(LedgerUnavailable, StateUnavailable, *REDIS_FAILURES):
                # One of all workers looks.
                if await self._state.add(LOOK_KEY, b"1", 0.9 * self._pace.look_seconds):
                    await asyncio.gather(*map(self._queue.submit, await self._left_behind()))
                self.waiting = await self._docket.waiting()


async def _drop() -> None:
    """Carry out nothing, for a message that is not a run id."""
