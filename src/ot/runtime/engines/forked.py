"""ForkedEngine: programs run by CPython itself, each in a child forked from a warm interpreter."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable
from typing import Any

from ot.config.models import Limits
from ot.errors import EngineCrashed, Overloaded, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach, StillbornRun
from ot.runtime.engines.forked_run import ForkedRun
from ot.runtime.engines.forked_session import ForkedSession
from ot.runtime.engines.ready_children import NOTHING_RAN, ReadyChildren, Room
from ot.runtime.engines.zygote_process import Locked, ZygoteProcess
from ot.runtime.program import Program


class ForkedEngine:
    """Runs each program in a child of its own; what holds the child is the zygote's affair."""

    name = "forked"

    def __init__(
        self,
        start: Callable[[], ZygoteProcess],
        *,
        check: Callable[[Locked], None] = lambda found: None,
        processes: int = 64,
        ready: int = 6,
        queue_seconds: float = 10.0,
    ) -> None:
        """Run at most *processes* programs at a time and keep *ready* children waiting; *check* every zygote."""
        self._ready = ready
        self._children = ReadyChildren(start, check, processes, ready, queue_seconds)

    def spawn(self) -> None:
        """Start the zygote's process, so that it is warm when the first program comes."""
        self._children.spawn()

    async def open(self) -> Locked:
        """Return what the zygote found out about its jail.

        Raises:
            EngineCrashed: It cannot be started.
        """
        return await self._children.open()

    async def start(self, limits: Limits) -> None:
        """Let the first children wait, so that the first run finds one."""
        await self.open()
        await self._children.prepare(_room(limits))

    def refuse(self, program: Program, reach: Reach) -> None:
        """Refuse nothing: it is CPython."""

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome.

        Raises:
            RunError: It ended without one.
        """
        for _ in range(self._ready + 1):
            # Every child that waited may have died meanwhile.
            with contextlib.suppress(StillbornRun):
                return await self._run(ForkedRun(program, reach, limits, deadline), limits)
        raise EngineCrashed(f"every process that was to run the program died before it did; {NOTHING_RAN}")

    async def _run(self, run: ForkedRun, limits: Limits) -> Outcome:
        try:
            async with self._children.child(_room(limits), run.deadline.at) as child:
                return await run.drive(child)
        except TimeoutError:
            raise Overloaded("all processes of the engine are busy, try again later") from None
        except RunError as error:
            error.printed = run.printed.text()
            raise

    async def open_session(self) -> ForkedSession:
        """Return a new session, whose process is forked for its first program."""
        return ForkedSession(self._children)

    async def health(self) -> EngineHealth:
        """Return how many runs there are, and what holds them."""
        return EngineHealth(self.name, "ok", {**self.details(), "running": self._children.running})

    def details(self) -> dict[str, Any]:
        """Return what is to be known beside the runs."""
        return {"python": platform.python_version()}

    @property
    def locked(self) -> Locked | None:
        """What the zygote found out about its jail, once it has."""
        return self._children.locked

    async def aclose(self) -> None:
        """End the zygote and every child."""
        await self._children.aclose()


def _room(limits: Limits) -> Room:
    return Room(limits.memory_mb << 20, limits.cpu_seconds)
