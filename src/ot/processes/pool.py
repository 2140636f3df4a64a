"""Pool: processes by what they were made of, leased by calls and held by those who need them."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

from ot.errors import ToolBusy
from ot.processes.backoff import Backoff

MAX_WAITING = 256
"""Calls that may wait for a place on one process."""
DRAIN_SECONDS = 30.0
REAP_PAUSE_SECONDS = 1.0


class Leased(ABC):
    """A process, or the connection to one, that calls lease."""

    def __init__(self, key: str, idle_seconds: float, places: int, most: int) -> None:
        """Let *places* calls be on it at once and *most* in all; it is idle when none came for *idle_seconds*."""
        self.key = self.held_as = key
        self.idle_seconds = idle_seconds
        self.last_used = time.monotonic()
        self.in_flight = 0
        """Calls that are on it or wait for it."""
        self.closing = False
        """Whether it takes no more calls."""
        self._most = most
        self._places = asyncio.Semaphore(places)
        self._unused = asyncio.Event()
        self._unused.set()

    @asynccontextmanager
    async def lease(self, tool: str, whom: str) -> AsyncGenerator[None]:
        """Yield when *tool* has a place on it; raise ToolBusy if too many calls are waiting already."""
        if self.in_flight >= self._most:
            raise ToolBusy(tool, f"{self.in_flight} calls are waiting for {whom}")
        self.in_flight += 1
        self._unused.clear()
        try:
            async with self._places:
                yield
        finally:
            self.in_flight -= 1
            self.last_used = time.monotonic()
            if not self.in_flight:
                self._unused.set()

    def is_idle(self, now: float) -> bool:
        """Return whether it has been idle for its time; one with a call in flight never is."""
        return not self.in_flight and now - self.last_used >= self.idle_seconds

    async def retire(self, seconds: float) -> None:
        """Take no more calls, give those under way *seconds* to end, then end it."""
        self.closing = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._unused.wait(), seconds)
        await self.end()

    @abstractmethod
    async def end(self) -> None:
        """Take no more calls, and return when nothing of it is left."""


class Pool[T: Leased]:
    """Starts nothing by itself; ends what is idle, what nobody holds any more, and at last everything."""

    ENDING_SECONDS: ClassVar[float] = 10.0
    """How long the pool's own end waits for that of its processes."""

    def __init__(self, backoff: Callable[[], Backoff], clock: Callable[[], float] = time.monotonic) -> None:
        """Give each key a *backoff* of its own."""
        self._new_backoff = backoff
        self._clock = clock
        self._by_key: dict[str, list[T]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._held: dict[object, frozenset[str]] = {}
        self._holders = Counter[str]()
        """How many need the processes of a key: looked up, as a whole team's workspaces may close at once."""
        self._ending: set[asyncio.Task[Any]] = set()
        self._reaper: asyncio.Task[None] | None = None
        self._closed = False

    def _all(self) -> list[T]:
        return [process for processes in self._by_key.values() for process in processes]

    def _add(self, process: T) -> None:
        self._by_key.setdefault(process.key, []).append(process)
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.ensure_future(self._reap())

    def _remove(self, process: T) -> None:
        processes = self._by_key.get(process.key, [])
        if process in processes:
            processes.remove(process)
        if not processes:
            self._by_key.pop(process.key, None)

    # ---------------------------------------------------------------- who needs them

    def hold(self, holder: object, keys: Iterable[str]) -> None:
        """Note that *holder* needs the processes of *keys* and no others: these may be tried again at once.

        One that nobody needs any more is retired: its calls may end, it takes no others.
        """
        before, now = self._held.pop(holder, frozenset()), frozenset(keys)
        if now:
            self._held[holder] = now
        if now != before:
            self._holders.update(now)
            self._holders.subtract(before)
            self._holders = +self._holders
        for key in before | now:
            self._forgive(key)
        for key in self._backoffs.keys() - self._holders.keys():
            self._forget(key)
        for process in self._all():
            if process.held_as not in self._holders:
                self._retire(process)

    def _backoff(self, key: str) -> Backoff:
        if key not in self._backoffs:
            self._backoffs[key] = self._new_backoff()
        return self._backoffs[key]

    def _forgive(self, key: str) -> None:
        if key in self._backoffs:
            self._backoffs[key].reset()

    def _forget(self, key: str) -> None:
        del self._backoffs[key]

    # ---------------------------------------------------------------- how they end

    async def _reap(self) -> None:
        while self._by_key and not self._closed:
            shortest = min(process.idle_seconds for process in self._all())
            await asyncio.sleep(min(REAP_PAUSE_SECONDS, shortest / 4))
            self.reap_idle()

    def reap_idle(self) -> None:
        """Let go of the processes that have been idle for their time."""
        now = self._clock()
        for process in self._all():
            if process.is_idle(now):
                self._on_idle(process)

    def _on_idle(self, process: T) -> None:
        self._end(process)

    def _retire(self, process: T) -> None:
        """End a process when its calls have ended; it takes no more of them from this moment."""
        self._let_go(process, process.retire(DRAIN_SECONDS))

    def _end(self, process: T) -> None:
        """End a process; it takes no more calls from this moment."""
        self._let_go(process, process.end())

    def _let_go(self, process: T, ending: Coroutine[Any, Any, None]) -> None:
        process.closing = True
        self._remove(process)
        self._later(ending)

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _settle(self) -> None:
        if self._ending:
            await asyncio.wait(list(self._ending), timeout=self.ENDING_SECONDS)

    async def aclose(self) -> None:
        """End all."""
        self._closed = True
        if self._reaper:
            self._reaper.cancel()
        for process in self._all():
            self._end(process)
        await self._settle()
