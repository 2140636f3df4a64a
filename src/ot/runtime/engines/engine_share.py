"""EngineShare: an engine as one of several clients uses it, which leaves room for the others."""

from __future__ import annotations

import asyncio

from ot.config.models import Engines, Limits
from ot.errors import Overloaded
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Engine, EngineHealth, EngineSession, Outcome, Reach
from ot.runtime.program import Program

BUSY = "this client's programs hold half of the engine's processes, which is all that one client may: try again later"


class EngineShare:
    """At most half of an engine's processes: whatever one client runs, another finds a place."""

    def __init__(self, engine: Engine, settings: Engines) -> None:
        """Use *engine*, which was made of *settings*."""
        self._engine = engine
        # Which of the two is chosen may not be known yet.
        pools = {"portable": [settings.portable], "auto": [settings.portable, settings.exact]}
        pool = min(pools.get(settings.use, [settings.exact]), key=lambda pool: pool.processes)
        self._queue_seconds = pool.queue_seconds
        self._places = asyncio.Semaphore(max(1, pool.processes // 2))

    @property
    def name(self) -> str:
        """The engine's name."""
        return self._engine.name

    def refuse(self, program: Program, reach: Reach) -> None:
        """Return when the engine can run *program* faithfully.

        Raises:
            NotSupported: It cannot; nothing has run.
        """
        self._engine.refuse(program, reach)

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome, once this client has a place for it.

        Raises:
            RunError: It ended without one.
        """
        try:
            async with deadline.timeout(self._queue_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise Overloaded(BUSY) from None
        try:
            return await self._engine.run(program, reach, limits, deadline)
        finally:
            self._places.release()

    async def open_session(self) -> EngineSession:
        """Return a new session; the settings bound how many a client has."""
        return await self._engine.open_session()

    async def health(self) -> EngineHealth:
        """Return the state of the engine, of all clients together."""
        return await self._engine.health()

    async def aclose(self) -> None:
        """Leave the engine to the others: whoever made it ends it."""
