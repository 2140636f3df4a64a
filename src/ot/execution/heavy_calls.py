"""HeavyCalls: how much of the calls that may take long is done in the server's process, and for whom.

Threads of one interpreter hold each other up, and with them the event loop that answers everybody. So few such calls
run here at once, each for a few milliseconds; what takes longer begins again in a helper process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ot.config.principal import os_user
from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.execution.fair_turns import FairTurns
from ot.execution.tool_context import TooMuchHere, WorkAllowance
from ot.registry.tool import Tool

HERE = 20_000
"""What a call may do here, in microseconds or so: starting a helper takes many times as long."""
HERE_WITH_HELPERS = 2_000
"""The same while helpers run, which take a call over in a millisecond or two."""
HELPERS_LAST_SECONDS = 60.0


class HandOver(Protocol):
    """Has a helper carry a tool out."""

    async def __call__(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value; raise ToolError."""
        ...


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
        """Return what *here* comes to within its allowance, or else *away*; no change is made before that is known."""
        who = _name_of(caller)
        async with self._here.turn(who):
            # Whose calls are with helpers already has shown that these take long.
            if not self._away.has(who):
                try:
                    return await here(WorkAllowance(self._allowed()))
                except TooMuchHere:
                    pass
        async with self._away.turn(who):
            self._helpers_until = time.monotonic() + HELPERS_LAST_SECONDS
            return await away()

    def little(self) -> WorkAllowance:
        """Return what a call may do here without having a turn."""
        return WorkAllowance(HERE_WITH_HELPERS)

    def _allowed(self) -> int:
        return HERE_WITH_HELPERS if time.monotonic() < self._helpers_until else HERE


def _name_of(caller: Caller) -> str:
    """Return who takes turns with others: each client of the user's own server, each principal of a team's."""
    return caller.seat if caller.principal == os_user() else caller.principal
