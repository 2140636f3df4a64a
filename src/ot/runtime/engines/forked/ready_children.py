"""ReadyChildren: forked children that wait, locked up, for the runs that will use them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from ot.errors import EngineCrashed
from ot.runtime.engines.forked.child_process import Child
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.zygote_process import JailReport, ZygoteProcess

logger = logging.getLogger(__name__)

TRIES = 3
"""How often a zygote is started before it counts as impossible: something may have killed one."""
NOTHING_RAN = "nothing of the program has run, run it again"
MAX_STARTS = 5
"""How often a zygote that died is started again within a minute."""
PAUSE_SECONDS = 0.015
"""While runs follow each other, those that are ready serve them: a fork would take the processor from them."""

MAX_FORKS = 4
"""On their way at a time, when runs wait for them; else one, for whoever runs meanwhile."""
MAX_ROOMS = 3
"""Clients whose limits differ take turns on one engine; children wait for so many of them."""


class ReadyChildren:
    """Hands out children, each used once, at most *processes* at a time, and keeps *ready* waiting in each room."""

    def __init__(
        self,
        start: Callable[[], ZygoteProcess],
        check: Callable[[JailReport], None],
        processes: int,
        ready: int,
        queue_seconds: float,
    ) -> None:
        """Start zygotes with *start* and *check* each; a run that finds no place waits *queue_seconds*."""
        self._start = start
        self._check = check
        self._ahead = ready
        self._queue_seconds = queue_seconds
        self._places = asyncio.Semaphore(processes)
        self._zygote: ZygoteProcess | None = None
        self._starting = asyncio.Lock()
        self._ready: dict[Room, deque[Child]] = {}
        """Those that wait, by what they may use; the room that was used last is the last."""
        self._wanted: deque[tuple[Room, asyncio.Future[Child]]] = deque()
        """Runs that found none ready: the next that comes is theirs."""
        self._fillers: set[asyncio.Task[None]] = set()
        self._coming = Counter[Room]()
        self._pausing: asyncio.TimerHandle | None = None
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)
        self._taken = 0.0
        self._closed = False
        self.locked: JailReport | None = None
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many children are ready."""
        return sum(map(len, self._ready.values()))

    def spawn(self) -> None:
        """Start the zygote's process now; what it has to tell is awaited later."""
        if self._zygote is None:
            self._zygote = self._start()
            self._zygote.on_warm = self._renew
            self._starts.append(time.monotonic())

    async def open(self) -> JailReport:
        """Start the zygote and return its report on the jail; raise EngineCrashed if it cannot be started."""
        async with self._starting:
            if self._zygote is not None and self.locked is not None:
                if self._zygote.alive:
                    return self.locked
                await self._restart(self._zygote)
            for _ in range(TRIES - 1):
                try:
                    return await self._test()
                except EngineCrashed as error:
                    logger.warning("the engine could not be started and is tried again: %s", error)
            return await self._test()

    async def _test(self) -> JailReport:
        self.spawn()
        assert self._zygote is not None
        try:
            found = await self._zygote.await_report()
            self._check(found)
        except EngineCrashed:
            await self._zygote.aclose()
            self._zygote = None
            raise
        self.locked = found
        return found

    def _renew(self) -> None:
        """Let other children wait: the zygote has become warmer than those are."""
        self._drop_ready()
        self._fill_later()

    async def _restart(self, zygote: ZygoteProcess) -> None:
        self._zygote = None
        await zygote.aclose()
        self._drop_ready()
        if len(self._starts) == MAX_STARTS and time.monotonic() - self._starts[0] < 60:
            raise EngineCrashed("the engine's zygote keeps dying; see the server's log")
        logger.warning("the engine's zygote had died and is started again")

    async def prepare(self, room: Room) -> None:
        """Let children wait that may use *room*."""
        self._enter(room)
        await self._fill()

    def _enter(self, room: Room) -> None:
        """Let children wait in *room* from now on, and in the last few that were used before it."""
        self._ready[room] = self._ready.pop(room, deque())
        if len(self._ready) > MAX_ROOMS:
            _kill_all(self._ready.pop(next(iter(self._ready))))

    @asynccontextmanager
    async def child(self, room: Room, deadline: float) -> AsyncGenerator[Child]:
        """Yield a child.

        Raises:
            TimeoutError: None became free in time.
            EngineCrashed: None is available.
        """
        async with asyncio.timeout(min(self._queue_seconds, deadline - time.monotonic())):
            await self._places.acquire()
        self.running += 1
        child: Child | None = None
        try:
            self._enter(room)
            self._taken = time.monotonic()
            child = self._take_ready(self._ready[room]) or await self._next(room)
            yield child
        finally:
            self.running -= 1
            if child is not None:
                child.kill()
            self._places.release()
            self._fill_later()

    @staticmethod
    def _take_ready(ready: deque[Child]) -> Child | None:
        while ready:
            child = ready.popleft()
            if child.is_alive():
                return child
            child.was_out_of_memory()  # if it was, no later death is to be taken for this one
            child.kill()
        return None

    async def _next(self, room: Room) -> Child:
        """Return the next child that comes, which may have been on its way already."""
        wanted: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._wanted.append((room, wanted))
        self._fill_later()
        try:
            return await wanted
        except asyncio.CancelledError:
            if wanted.done() and not wanted.cancelled() and not wanted.exception():
                wanted.result().kill()
            raise

    async def fork_apart(self, room: Room) -> Child:
        """Return a child that whoever asks keeps and kills; it takes no run's place.

        Raises:
            EngineCrashed: None is available.
        """
        why = ""
        for _ in range(2):
            try:
                await self.open()
                assert self._zygote is not None
                return await self._zygote.fork(room.memory_bytes, room.cpu_seconds)
            except EngineCrashed as error:
                why = str(error)
                logger.warning("no child could be forked: %s", error)
        raise EngineCrashed(f"the engine could not start a process for the program ({why}); {NOTHING_RAN}")

    def _fill_later(self) -> None:
        if self._pausing is not None:
            self._pausing.cancel()
        if len(self._fillers) >= (MAX_FORKS if self._wanted else 1):
            return
        room = self._missing()
        if room is None or self._pause(room):
            return
        filling = asyncio.ensure_future(self._fill())
        self._fillers.add(filling)
        filling.add_done_callback(self._on_filled)

    def _on_filled(self, filling: asyncio.Task[None]) -> None:
        self._fillers.discard(filling)
        if filling.cancelled():
            return
        if error := filling.exception():
            logger.warning("no child is ready: %s", error)
        else:
            self._fill_later()  # callers since it stopped were told that it was still at work

    async def _fill(self) -> None:
        try:
            while (room := self._missing()) is not None and not self._pause(room):
                self._deliver(room, await self._fork_counted(room))
        except EngineCrashed as error:
            self._fail(error)
            raise

    async def _fork_counted(self, room: Room) -> Child:
        self._coming[room] += 1
        try:
            return await self.fork_apart(room)
        finally:
            self._coming[room] -= 1

    def _pause(self, room: Room) -> bool:
        """Return whether a fork for *room* has to wait, and see to it that it does not wait for ever."""
        left = self._taken + PAUSE_SECONDS - time.monotonic()
        if self._wanted or not self._ready.get(room) or left <= 0:
            return False
        self._pausing = asyncio.get_running_loop().call_later(left, self._fill_later)
        return True

    def _missing(self) -> Room | None:
        """Return what the next child should be able to use, if one more is needed."""
        while self._wanted and self._wanted[0][1].done():
            self._wanted.popleft()
        if self._closed:
            return None
        coming = Counter(self._coming)
        for room, wanted in self._wanted:
            if not wanted.done():
                if not coming[room]:
                    return room
                coming[room] -= 1
        rooms = reversed(self._ready.items())
        return next((room for room, ready in rooms if len(ready) + coming[room] < self._ahead), None)

    def _deliver(self, room: Room, child: Child) -> None:
        for wanted_room, wanted in self._wanted:
            if wanted_room == room and not wanted.done():
                return wanted.set_result(child)
        return self._ready[room].append(child) if room in self._ready and not self._closed else child.kill()

    def _fail(self, error: EngineCrashed) -> None:
        while self._wanted:
            _, wanted = self._wanted.popleft()
            if not wanted.done():
                wanted.set_exception(EngineCrashed(str(error)))

    def _drop_ready(self) -> None:
        for ready in self._ready.values():
            _kill_all(ready)

    async def aclose(self) -> None:
        """End the zygote and every child."""
        self._closed = True
        if self._pausing is not None:
            self._pausing.cancel()
        for filling in self._fillers:
            filling.cancel()
        self._drop_ready()
        self._fail(EngineCrashed("the engine was closed"))
        if self._zygote is not None:
            await self._zygote.aclose()
            self._zygote = None


def _kill_all(ready: deque[Child]) -> None:
    while ready:
        ready.popleft().kill()
