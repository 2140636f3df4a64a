"""ReadySessions: Monty sessions entered ahead of the runs that will use them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pydantic_monty as monty

from ot.errors import EngineCrashed

logger = logging.getLogger(__name__)

NO_SLEEP_CAP: monty.OSPolicy = {"sleep_system_max": float("inf")}
"""Monty would silently cut a sleep to ten seconds; the run's own clock bounds it instead."""
AHEAD = 2
"""Entering a session is half of a small run; this many wait ready."""

REPLY_SECONDS = 0.001
"""By then the reply is on its way: what makes the next run quick should not make this one slow."""

HAND_BACK_SECONDS = 0.02
"""How long a run waits for a process that another hands back, before one more is started: as long as that takes."""

END_SECONDS = 2.0
"""How long sessions on their way in or out may take once the engine is closed."""


class ReadySessions:
    """Hands out fresh sessions, each used once, at most *processes* at a time."""

    def __init__(self, processes: int, queue_seconds: float) -> None:
        """Bound the pool; a run that finds it full waits *queue_seconds*."""
        self._processes = processes
        self._queue_seconds = queue_seconds
        self._pool: monty.AsyncMonty | None = None
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(processes)
        self._ready: deque[monty.AsyncMontySession] = deque()
        self._leaving: deque[monty.AsyncMontySession | None] = deque()
        self._limits: dict[str, Any] = {}
        self._workers: set[int] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._handing_back: set[asyncio.Task[None]] = set()
        self._closed = False
        self._entering = 0
        self.running = 0

    @property
    def ready(self) -> int:
        """How many sessions wait for a program."""
        return len(self._ready)

    async def prepare(self, limits: dict[str, Any]) -> None:
        """Start the pool and enter sessions under *limits*, dropping those under others."""
        async with self._starting:
            if self._pool is None:
                pool = monty.AsyncMonty(min_processes=AHEAD, max_processes=self._processes + AHEAD)
                self._pool = await self._enter_whole(pool.__aenter__())
            if limits != self._limits:
                self._limits = limits
                while self._ready:
                    await asyncio.shield(self._later(self._leave(self._ready.popleft())))
                await self._enter_ahead()

    @asynccontextmanager
    async def session(
        self, limits: dict[str, Any], deadline: float, policy: monty.OSPolicy | None = None
    ) -> AsyncGenerator[monty.AsyncMontySession]:
        """Yield a fresh session, which may have a *policy* of its own; raise TimeoutError if none becomes free."""
        if limits != self._limits or self._pool is None:
            await self.prepare(limits)
        async with asyncio.timeout(min(self._queue_seconds, deadline - time.monotonic())):
            await self._places.acquire()
        self.running += 1
        session: monty.AsyncMontySession | None = None
        try:
            session = (None if policy else await self._take_ready()) or await self._enter(limits, policy)
            yield session
        finally:
            self.running -= 1
            # Leaving hands the worker back, or buries it; the reply does not wait for that, unless another run does.
            self._leaving.append(session)
            pause = 0.0 if self._places.locked() else REPLY_SECONDS
            asyncio.get_running_loop().call_later(pause, self._hand_back_next)

    async def _take_ready(self) -> monty.AsyncMontySession | None:
        """Return a session that was entered ahead, or is about to be: one more would be one more process for good."""
        if not self._ready and self._leaving:
            self._hand_back_next()
        if not self._ready and self._handing_back:
            await asyncio.wait(self._handing_back, timeout=HAND_BACK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        while self._ready:
            session = self._ready.popleft()
            if _is_alive(session.worker_pid):
                return session
            self._later(self._leave(session))
        return None

    async def _enter(self, limits: dict[str, Any], policy: monty.OSPolicy | None = None) -> monty.AsyncMontySession:
        assert self._pool is not None
        policy = NO_SLEEP_CAP if policy is None else {**NO_SLEEP_CAP, **policy}
        # Of the pool's idle workers every one may have died since it was last used.
        for _ in range(self._processes + AHEAD + 1):
            session = self._pool.checkout(limits=limits, os_policy=policy)  # pyright: ignore[reportArgumentType] - a dict of ResourceLimits' keys
            try:
                entered = await self._enter_whole(session.__aenter__())
                self._know(entered.worker_pid)
                return entered
            except monty.MontyCrashedError as error:
                logger.warning("a worker had died while it was idle: %s", error)
        raise EngineCrashed("the engine's processes die as soon as they start")

    async def _enter_whole[Entered: (monty.AsyncMonty, monty.AsyncMontySession)](
        self, entering: Coroutine[Any, Any, Entered]
    ) -> Entered:
        """Enter it and return the result; if nobody waits any more, leave it, since its process would live on."""
        task = asyncio.ensure_future(entering)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._later(self._leave_entered(task))
            raise

    async def _leave_entered(self, entering: asyncio.Future[Any]) -> None:
        with contextlib.suppress(monty.MontyError):
            await self._leave(await entering)

    def _know(self, pid: int | None) -> None:
        if pid is not None and pid not in self._workers:
            self._workers = {pid, *(worker for worker in self._workers if _is_alive(worker))}

    def _hand_back_next(self) -> None:
        if self._leaving:  # else the engine was closed meanwhile, or another run did not wait
            task = self._later(self._hand_back(self._leaving.popleft()))
            self._handing_back.add(task)
            task.add_done_callback(self._handing_back.discard)

    async def _hand_back(self, session: monty.AsyncMontySession | None) -> None:
        try:
            if session is not None:
                await self._leave(session)
        finally:
            self._places.release()
        await self._enter_ahead()

    async def _enter_ahead(self) -> None:
        # What another run's end enters meanwhile counts, too: the pool would keep the process of each that is too many.
        while len(self._ready) + self._entering < AHEAD and not self._closed:
            limits, self._entering = self._limits, self._entering + 1
            try:
                session = await self._enter(limits)
            finally:
                self._entering -= 1
            if limits == self._limits and not self._closed and len(self._ready) < AHEAD:
                self._ready.append(session)
            else:
                await self._leave(session)
            if self._leaving or len(self._handing_back) > 1:
                break  # whoever hands back the next process enters it: the pool has none now, and would start one more

    @staticmethod
    async def _leave(session: monty.AsyncMontySession | monty.AsyncMonty) -> None:
        try:
            await session.__aexit__(None, None, None)
        except monty.MontyError as error:
            logger.debug("a session could not be left: %s", error)

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("no session could be entered ahead: %s", error)

    async def aclose(self) -> None:
        """End all workers."""
        self._closed = True
        await self._settle()
        for task in list(self._background):
            task.cancel()
        await self._settle()
        while self._ready:
            await self._leave(self._ready.popleft())
        while self._leaving:
            if session := self._leaving.popleft():
                await self._leave(session)
        if self._pool is not None:
            await self._pool.__aexit__(None, None, None)
            self._pool = None
            await self._reap_workers()

    async def _settle(self) -> None:
        if self._background:
            await asyncio.wait(self._background, timeout=END_SECONDS)

    async def _reap_workers(self) -> None:
        # The pool kills a worker and forgets it: a process that lives on would keep it as a zombie.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self._workers:
                    self._workers = {pid for pid in self._workers if not _is_reaped(pid)}
                    await asyncio.sleep(REPLY_SECONDS if self._workers else 0)


def _is_reaped(pid: int) -> bool:
    if not hasattr(os, "waitid"):
        return True
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def _is_alive(pid: int | None) -> bool:
    """Whether a worker that has waited idle is still there: the system may have ended it meanwhile."""
    if pid is None or not hasattr(os, "waitid"):
        return True
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False
