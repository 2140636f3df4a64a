"""FairTurns: a few places that callers take in turn, and of which no caller has more than a part."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class FairTurns:
    """Hands out places: whoever waits is served after one turn of each other caller, however many they ask for."""

    def __init__(self, places: int, each: int) -> None:
        """Give out *places* in all, and *each* to one caller."""
        self._free = places
        self._each = each
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def has(self, who: str) -> bool:
        """Return whether *who* has a place or waits for one."""
        return who in self._held or who in self._waiting

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncGenerator[None]:
        """Give *who* a place for as long as the block takes."""
        if self._free and self._held[who] < self._each:
            self._take(who)
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._give_back(who)

    async def _wait(self, who: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(who, turn)
            else:  # its turn had just come
                self._give_back(who)
            raise

    def _leave(self, who: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(who, deque())
        if turn in line:
            line.remove(turn)
        if not line:
            self._waiting.pop(who, None)

    def _take(self, who: str) -> None:
        self._free -= 1
        self._held[who] += 1

    def _give_back(self, who: str) -> None:
        self._free += 1
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
        self._serve()

    def _serve(self) -> None:
        while self._free:
            who = next((one for one in self._waiting if self._held[one] < self._each), None)
            if who is None:
                return
            line = self._waiting.pop(who)
            turn = line.popleft()
            if line:
                self._waiting[who] = line  # behind all others
            if not turn.done():  # a cancelled one has yet to leave
                self._take(who)
                turn.set_result(None)
