"""WorkerPool: starts workers at their first call, reuses them, ends them when idle, and survives their deaths."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ot.errors import ToolBusy, ToolUnavailable, WorkerDied
from ot.execution.call_context import CallContext
from ot.execution.workers.crash_budget import CrashBudget
from ot.execution.workers.pack_environment import PackEnvironment, PackEnvironments
from ot.execution.workers.spool_directories import SpoolDirectories
from ot.execution.workers.worker import NotReceived, Worker
from ot.execution.workers.worker_spec import WorkerSpec
from ot.registry.tool import Tool

logger = logging.getLogger(__name__)

TRIES = 3
"""How many workers a call may be given to when those before it ended without having read it."""
DRAIN_SECONDS = 30.0
REAP_PAUSE_SECONDS = 1.0
SWEEP_SECONDS = 60.0
"""How often what killed servers have spooled is looked for, while workers live."""
FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})

Tell = Callable[[str], None]


class WorkerPool:
    """All workers of a server, by what they were made of."""

    def __init__(
        self, state: Path, *, clock: Callable[[], float] = time.monotonic, crash_deaths: int | None = None
    ) -> None:
        """Keep environments and spooled replies below *state*."""
        self._clock = clock
        self._crash_deaths = crash_deaths
        self._environments = PackEnvironments(state, os.environ)
        self._workers: dict[str, list[Worker]] = {}
        self._starts: dict[str, asyncio.Task[Worker]] = {}
        self._budgets: dict[str, tuple[str, CrashBudget]] = {}
        self._problems: dict[str, tuple[str, str]] = {}
        self._spools = SpoolDirectories(state / "spool")
        self._next_sweep = 0.0
        self._leaving: set[asyncio.Task[None]] = set()
        self._reaper: asyncio.Task[None] | None = None
        self._closed = False

    # ---------------------------------------------------------------- calls

    async def prepare(self, spec: WorkerSpec, tell: Tell | None = None) -> None:
        """Return when a worker for *spec* can be called; installing and starting have deadlines of their own.

        Raises:
            ToolUnavailable: It cannot be installed or started.
            ToolBusy: It died too often lately.
        """
        if self._idle_or_least(spec) is None:
            await self._start(spec, tell)

    async def call(
        self, spec: WorkerSpec, tool: Tool, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        """Return the result message of one call, on a worker that is there or a new one."""
        for _ in range(TRIES - 1):
            with suppress(NotReceived):
                return await self._call(spec, tool, arguments, context)
        return await self._call(spec, tool, arguments, context)

    async def _call(
        self, spec: WorkerSpec, tool: Tool, arguments: dict[str, Any], context: CallContext
    ) -> dict[str, Any]:
        worker = self._idle_or_least(spec) or await self._start(spec, None)
        try:
            result = await worker.call(tool, arguments, context)
        finally:
            if worker.worn and not worker.closing:
                self._retire(worker)
        self._budget(spec).worked()
        return result

    def _idle_or_least(self, spec: WorkerSpec) -> Worker | None:
        workers = [worker for worker in self._workers.get(spec.key, ()) if worker.usable]
        if not workers:
            return None
        least = min(workers, key=lambda worker: worker.in_flight)
        return None if least.in_flight and len(workers) < spec.processes else least

    # ---------------------------------------------------------------- starting

    async def _start(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        """Return a new worker; who wants the same at the same time shares the start, and a cancelled one goes on."""
        if self._closed:
            raise ToolUnavailable(spec.pack, "the server is ending")
        budget = self._budget(spec)
        if budget.seconds_closed:
            why = f"its worker died too often, calls are refused for {budget.seconds_closed:.1f} s more"
            raise ToolBusy(spec.pack, f"{why}. {budget.last_words}")
        task = self._starts.get(spec.key)
        if task is None:
            task = asyncio.ensure_future(self._started(spec, tell))
            self._starts[spec.key] = task
            task.add_done_callback(lambda done: self._starts.pop(spec.key, None))
            # Nobody may be left to take the error when all who waited were cancelled.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _started(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        try:
            worker = await self._spawned(spec, tell)
        except ToolUnavailable as error:
            self._problems[spec.key] = (spec.pack, error.why)
            raise
        try:
            await worker.start()
        except BaseException as error:
            # Also when nobody wants it any more because the server ends.
            worker.kill()
            self._later(worker.leave())
            if isinstance(error, ToolUnavailable):
                self._budget(spec).died(error.why)
                self._problems[spec.key] = (spec.pack, error.why)
            raise
        worker.on_death = self._buried
        self._problems.pop(spec.key, None)
        self._workers.setdefault(spec.key, []).append(worker)
        if worker.ended is not None:
            self._buried(worker)
            raise WorkerDied(spec.pack, worker.ended.text, worker.ended.stderr)
        self._watch()
        return worker

    async def _spawned(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        """Return a process for *spec*; when the system has no room left, idle workers make some."""
        while True:
            try:
                environment = await self._environments.prepare(
                    spec.pack, spec.files, spec.main, budget=spec.install_seconds, progress=tell
                )
                return await self._launched(spec, environment)
            except ToolUnavailable as error:
                cause = error.__cause__
                full = isinstance(cause, OSError) and cause.errno in FULL
                if not full or not self._evict():
                    raise
            await self._settle()

    async def _launched(self, spec: WorkerSpec, environment: PackEnvironment) -> Worker:
        spool: Path | None = None
        try:
            spool = self._spools.new()
            return await Worker.launch(spec, environment, spool)
        except OSError as error:
            if spool:
                shutil.rmtree(spool, ignore_errors=True)
            raise ToolUnavailable(spec.pack, f"its process cannot be started: {error}") from error

    def _all(self) -> list[Worker]:
        return [worker for workers in self._workers.values() for worker in workers]

    def _evict(self) -> bool:
        """Let go of the idle worker that was used longest ago."""
        idle = [worker for worker in self._all() if worker.usable and not worker.in_flight]
        if not idle:
            return False
        self._dismiss(min(idle, key=lambda worker: worker.last_used))
        return True

    def _budget(self, spec: WorkerSpec) -> CrashBudget:
        if spec.key not in self._budgets:
            deaths = {} if self._crash_deaths is None else {"deaths": self._crash_deaths}
            self._budgets[spec.key] = (spec.pack, CrashBudget(self._clock, **deaths))
        return self._budgets[spec.key][1]

    # ---------------------------------------------------------------- ending

    def _buried(self, worker: Worker) -> None:
        self._forget(worker)
        if not worker.closing and worker.ended is not None:
            self._budget(worker.spec).died(f"{worker.ended.text}. {worker.ended.stderr[-500:]}".strip())
            logger.warning("the worker of %s died: %s", worker.spec.pack, worker.ended.text)

    def _forget(self, worker: Worker) -> None:
        workers = self._workers.get(worker.spec.key, [])
        if worker in workers:
            workers.remove(worker)
        if not workers:
            self._workers.pop(worker.spec.key, None)

    def _retire(self, worker: Worker) -> None:
        """End a worker when its calls have ended; it takes no more of them from this moment."""
        worker.closing = True
        self._forget(worker)
        self._later(self._drained(worker))

    def _dismiss(self, worker: Worker) -> None:
        """End a worker that no call is on; it takes no more calls from this moment."""
        worker.closing = True
        self._forget(worker)
        self._later(worker.leave())

    def keep_only(self, keys: Iterable[str]) -> None:
        """Retire every worker that is not among *keys*: its calls may end, it takes no others; budgets start afresh."""
        kept = set(keys)
        self._budgets.clear()
        self._problems.clear()
        for worker in self._all():
            if worker.spec.key not in kept:
                self._retire(worker)

    @staticmethod
    async def _drained(worker: Worker) -> None:
        await worker.wait_idle(DRAIN_SECONDS)
        await worker.leave()

    def _watch(self) -> None:
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.ensure_future(self._reap())

    async def _reap(self) -> None:
        while self._workers and not self._closed:
            await asyncio.sleep(min(REAP_PAUSE_SECONDS, self._shortest_idle() / 4))
            self.reap_idle()
            if time.monotonic() >= self._next_sweep:
                self._next_sweep = time.monotonic() + SWEEP_SECONDS
                await asyncio.get_running_loop().run_in_executor(None, self._spools.sweep)

    def _shortest_idle(self) -> float:
        return min((worker.spec.idle_seconds for worker in self._all()), default=REAP_PAUSE_SECONDS)

    def reap_idle(self) -> None:
        """End the workers that have been idle for their time; one with a call in flight never is."""
        now = self._clock()
        for worker in self._all():
            if not worker.in_flight and now - worker.last_used >= worker.spec.idle_seconds:
                self._dismiss(worker)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _settle(self) -> None:
        if self._leaving:
            await asyncio.wait(list(self._leaving), timeout=5.0)

    def states(self) -> Mapping[str, str]:
        """Return how each pack is that was called: ready, unavailable, or refused for a while."""
        states = {pack: f"unavailable: {why[:500]}" for pack, why in self._problems.values()}
        states |= {worker.spec.pack: "ready" for worker in self._all()}
        for pack, budget in self._budgets.values():
            if budget.seconds_closed:
                states[pack] = f"refused for {budget.seconds_closed:.1f} s: {budget.last_words[:200]}"
        return states

    def spooled_bytes(self) -> int:
        """Return how much of the disk replies take that are too large for the wire, those of other servers too."""
        return self._spools.total_bytes()

    async def aclose(self) -> None:
        """End all workers."""
        self._closed = True
        if self._reaper:
            self._reaper.cancel()
        starts = list(self._starts.values())
        for task in starts:
            task.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
        for worker in self._all():
            self._dismiss(worker)
        await self._environments.aclose()
        await self._settle()
        self._spools.close()
