"""RunBell: tells a team's workers that runs wait in the book, and not which."""

from __future__ import annotations

import asyncio
import logging

from onetool_team.state.shared_state import SharedState, StateUnavailable

logger = logging.getLogger(__name__)

MAILBOX = "background:bell"
RING_SECONDS = 10.0
"""How long a ring is heard: workers look by themselves more often than that."""
MOST_RINGS = 1000


class RunBell:
    """Rings in the shared state. A ring that is lost costs seconds, and one that somebody forged a look at the book."""

    def __init__(self, state: SharedState) -> None:
        """Ring in *state*."""
        self._state = state

    async def submit(self, id: str) -> None:
        """Have a worker look into the book, where the run *id* is."""
        try:
            await self._state.send(MAILBOX, b"", RING_SECONDS)
        except StateUnavailable as error:
            logger.info("run %s waits until a worker looks into the book: %s", id, error)

    async def wait(self, seconds: float) -> None:
        """Return when it has rung, or after *seconds*; whoever looks then need not hear what rang before."""
        until = asyncio.get_running_loop().time() + seconds
        try:
            if await self._state.receive(MAILBOX, seconds) is None:
                return
            for _ in range(MOST_RINGS):
                if await self._state.receive(MAILBOX, 0) is None:
                    return
        except StateUnavailable:
            await asyncio.sleep(max(0.0, until - asyncio.get_running_loop().time()))
