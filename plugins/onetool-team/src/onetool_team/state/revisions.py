"""Revisions: how often something was changed that all replicas read, so that each notices what another did."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from onetool_team.state.shared_state import SharedState, StateUnavailable

LOOK_SECONDS = 1.0


class Revisions:
    """A number for each topic, looked at in the background: to ask for one costs nothing."""

    def __init__(self, state: SharedState, topics: Iterable[str]) -> None:
        """Know of no changes yet."""
        self._state = state
        self._numbers = dict.fromkeys(topics, 0)
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on."""
        self._looking = asyncio.ensure_future(self._look_on())

    def number(self, topic: str) -> int:
        """Return the number that was seen last: another one than before means that there is something new."""
        return self._numbers[topic]

    async def advance(self, topic: str) -> None:
        """Tell the other replicas that *topic* has changed; without the shared state they find out later, or never."""
        with contextlib.suppress(StateUnavailable):
            await self._state.count(_key(topic))

    async def look(self) -> None:
        """See what the others have changed."""
        with contextlib.suppress(StateUnavailable):
            for topic in self._numbers:
                self._numbers[topic] = int(await self._state.get(_key(topic)) or 0)

    async def _look_on(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def aclose(self) -> None:
        """Look no more."""
        if self._looking:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking


def _key(topic: str) -> str:
    return f"revision:{topic}"
