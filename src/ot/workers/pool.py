"""WorkerPool: starts workers at their first call, reuses them, ends them when idle, and survives their deaths."""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any

from ot.errors import ToolBusy, ToolUnavailable, WorkerDied
from ot.execution.call_context import CallContext
from ot.processes.backoff import Backoff
from ot.processes.pool import Pool
from ot.registry.tool import Tool
from ot.workers.pack_environment import ISOLATED, PackEnvironment, PackEnvironments
from ot.workers.spec import WorkerSpec
from ot.workers.spool_directories import SpoolDirectories
from ot.workers.worker import NotReceived, Worker

logger = logging.getLogger(__name__)

TRIES = 3
"""How many workers a call may be given to when those before it ended without having read it."""
DEATHS = 5
"""How many deaths in a minute it takes before calls are refused for a while."""
MOST_IDLE = 32
"""Workers that are kept for further calls: on a team's server everyone has workers of their own."""
SWEEP_SECONDS = 60.0
"""How often what killed servers have spooled is looked for, while workers live."""
FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})

Tell = Callable[[str], None]


def crash_backoff(clock: Callable[[], float] = time.monotonic, deaths: int = DEATHS) -> Backoff:
    """Return how long calls are refused after a worker has died *deaths* times in a minute."""
    return Backoff(clock, first=0.1, longest=30.0, free=deaths - 1, window=60.0)


class WorkerPool(Pool[Worker]):
    """All workers of a server, by what they were made of."""

    ENDING_SECONDS = 5.0

    def __init__(
        self,
        state: Path,
        environ: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        deaths: int = DEATHS,
    ) -> None:
        """Keep environments and spooled replies below *state*; uv finds its settings in *environ*."""
        super().__init__(partial(crash_backoff, clock, deaths), clock)
        self._environments = PackEnvironments(state, environ)
        self._starts: dict[str, asyncio.Task[Worker]] = {}
        self._packs: dict[str, str] = {}
        self._problems: dict[str, str] = {}
        self._spools = SpoolDirectories(state / "spool")
        self._next_sweep = 0.0

    # ---------------------------------------------------------------- calls

    async def prepare(self, spec: WorkerSpec, tell: Tell | None = None) -> None:
        """Wait until a worker for *spec* can be called; installing and starting have their own deadlines.

        Raises:
            ToolUnavailable: It cannot be installed or started.
            ToolBusy: It died too often lately.
        """
        if self._idle_or_least(spec) is None:
            await self._start(spec, tell)

    async def install(self, spec: WorkerSpec, tell: Tell | None = None) -> PackEnvironment:
        """Return the environment of *spec*, installed now unless it is there.

        Raises:
            ToolUnavailable: It cannot be installed.
        """
        if spec.directory:
            return PackEnvironment(Path(sys.executable), ISOLATED, spec.directory, spec.directory / spec.main)
        return await self._environments.prepare(
            spec.pack,
            spec.files,
            spec.main,
            budget=spec.install_seconds,
            progress=tell,
            environ=spec.install_environ,
        )

    def find_installed(self, spec: WorkerSpec) -> PackEnvironment | None:
        """Return the environment of *spec* if it is there."""
        return self._environments.find(spec.pack, spec.files, spec.main)

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
        self._backoff(spec.key).note_success()
        return result

    def _idle_or_least(self, spec: WorkerSpec) -> Worker | None:
        workers = [worker for worker in self._by_key.get(spec.key, ()) if worker.usable]
        if not workers:
            return None
        least = min(workers, key=lambda worker: worker.in_flight)
        return None if least.in_flight and len(workers) < spec.processes else least

    # ---------------------------------------------------------------- starting

    async def _start(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        """Return a new worker; who wants the same at the same time shares the start, and a cancelled one goes on."""
        if self._closed:
            raise ToolUnavailable(spec.pack, "the server is ending")
        backoff = self._backoff(spec.key)
        self._packs[spec.key] = spec.pack
        if backoff.seconds_left:
            why = f"its worker died too often, calls are refused for {backoff.seconds_left:.1f} s more"
            raise ToolBusy(spec.pack, f"{why}. {backoff.why}")
        task = self._starts.get(spec.key)
        if task is None:
            # Without the first caller's variables: what the worker says later may be about anybody's call.
            task = asyncio.get_running_loop().create_task(self._start_worker(spec, tell), context=Context())
            self._starts[spec.key] = task
            task.add_done_callback(lambda done: self._starts.pop(spec.key, None))
            # Nobody may be left to take the error when all who waited were cancelled.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _start_worker(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        try:
            worker = await self._spawn(spec, tell)
        except ToolUnavailable as error:
            self._problems[spec.key] = error.why
            raise
        try:
            await worker.start()
        except BaseException as error:
            # Also if it is no longer needed because the server ends.
            worker.kill()
            self._later(worker.end())
            if isinstance(error, ToolUnavailable):
                self._backoff(spec.key).note_failure(error.why)
                self._problems[spec.key] = error.why
            raise
        worker.on_death = self._on_death
        self._problems.pop(spec.key, None)
        self._add(worker)
        self._evict(MOST_IDLE)
        if worker.ended is not None:
            self._on_death(worker)
            raise WorkerDied(spec.pack, worker.ended.text, worker.ended.stderr)
        return worker

    async def _spawn(self, spec: WorkerSpec, tell: Tell | None) -> Worker:
        """Return a process for *spec*; when the system has no room left, idle workers make some."""
        while True:
            try:
                return await self._launch(spec, await self.install(spec, tell))
            except ToolUnavailable as error:
                cause = error.__cause__
                full = isinstance(cause, OSError) and cause.errno in FULL
                if not full or not self._evict():
                    raise
            await self._settle()

    async def _launch(self, spec: WorkerSpec, environment: PackEnvironment) -> Worker:
        spool: Path | None = None
        try:
            spool = self._spools.new()
            return await Worker.launch(spec, environment, spool)
        except OSError as error:
            if spool:
                shutil.rmtree(spool, ignore_errors=True)
            raise ToolUnavailable(spec.pack, f"its process cannot be started: {error}") from error

    def _evict(self, most: int = 0) -> bool:
        """End the idle worker that was used longest ago, if there are more than *most*."""
        idle = [worker for worker in self._all() if worker.usable and not worker.in_flight]
        if len(idle) <= most:
            return False
        self._end(min(idle, key=lambda worker: worker.last_used))
        return True

    # ---------------------------------------------------------------- ending

    def _on_death(self, worker: Worker) -> None:
        self._remove(worker)
        if not worker.closing and worker.ended is not None:
            why = f"{worker.ended.text}. {worker.ended.stderr[-500:]}".strip()
            self._backoff(worker.key).note_failure(why)
            logger.warning("the worker of %s died: %s", worker.spec.pack, worker.ended.text)

    def _forgive(self, key: str) -> None:
        super()._forgive(key)
        self._problems.pop(key, None)

    def _forget(self, key: str) -> None:
        super()._forget(key)
        self._packs.pop(key, None)
        self._problems.pop(key, None)

    def reap_idle(self) -> None:
        """End the workers that have been idle for their time, and now and then what killed servers have spooled."""
        super().reap_idle()
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            self._later(asyncio.to_thread(self._spools.sweep))

    def states(self, keys: Iterable[str] | None = None) -> Mapping[str, str]:
        """Return the state of each called pack, or of those of *keys*: ready, unavailable, or refused."""
        chosen = self._packs if keys is None else [key for key in keys if key in self._packs]
        return {self._packs[key]: state for key in chosen if (state := self._state(key))}

    def _state(self, key: str) -> str:
        backoff = self._backoff(key)
        if backoff.seconds_left:
            return f"refused for {backoff.seconds_left:.1f} s: {backoff.why[:200]}"
        if key in self._by_key:
            return "ready"
        return f"unavailable: {self._problems[key][:500]}" if key in self._problems else ""

    def count_spooled_bytes(self) -> int:
        """Return the disk space of replies too large for the wire, including other servers'."""
        return self._spools.total_bytes()

    async def aclose(self) -> None:
        """End all workers."""
        self._closed = True
        starts = list(self._starts.values())
        for task in starts:
            task.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
        await self._environments.aclose()
        await super().aclose()
        self._spools.close()
