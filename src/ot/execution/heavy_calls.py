"""HeavyCalls: how much of the calls that may take long is done in the server's process, and for whom.

Threads of one interpreter hold each other up, and with them the event loop that answers everybody. So few such calls
run here at once, each for a few milliseconds; what takes longer begins again in a helper process.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from ot.config.principal import os_user
from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.execution.tool_context import TooMuchHere, WorkAllowance
from ot.registry.tool import Tool

HERE = 20_000
"""What a call may do here, in microseconds or so: starting a helper takes many times as long."""
HERE_WITH_HELPERS = 2_000
"""The same while helpers run, which take a call over in a millisecond or two."""
HELPERS_LAST_SECONDS = 60.0


type HandOver = Callable[[Tool, dict[str, Any], CallContext], Awaitable[Any]]
"""Has a helper carry a tool out, with these arguments, and returns its value; raises ToolError."""


class HeavyCalls:
    """The places for such calls in one process, which all its workspaces share."""

    def __init__(self) -> None:
        """Let there be as many helpers as processors, of which one caller has at most half."""
        self.helpers = max(2, os.cpu_count() or 2)
        self._here = FairTurns(2, 1)
        self._away = FairTurns(self.helpers, self.helpers // 2)
        self._helpers_until = 0.0

    async def call(
        self, caller: Caller, here: Callable[[WorkAllowance], Awaitable[Any]], away: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Return the result of *here* if its allowance suffices, else of *away*; nothing is changed before."""
        # Those who take turns are the clients of the user's own server, and the principals of a team's.
        who = caller.seat if caller.principal == os_user() else caller.principal
        async with self._here.turn(who):
            # Whose calls are with helpers already has shown that these take long.
            if not self._away.has(who):
                try:
                    helped = time.monotonic() < self._helpers_until
                    return await here(WorkAllowance(HERE_WITH_HELPERS if helped else HERE))
                except TooMuchHere:
                    pass
        async with self._away.turn(who):
            self._helpers_until = time.monotonic() + HELPERS_LAST_SECONDS
            return await away()

    def little(self) -> WorkAllowance:
        """Return the allowance of a call that has no turn."""
        return WorkAllowance(HERE_WITH_HELPERS)


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
