"""ClientRoots: what a proxied server is told when it asks for its roots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

type Roots = Sequence[tuple[str, str]]
"""Addresses of directories, each with a name or an empty one."""
type AskRoots = Callable[[], Awaitable[Roots]]

SECONDS = 0.5
MOST = 50


class ClientRoots:
    """Asks the client whenever a server wants to know; where that brings nothing, the workspace stands in."""

    def __init__(self) -> None:
        self._ask: AskRoots | None = None
        self._too_slow = False

    def offer(self, ask: AskRoots | None) -> None:
        """Take how the client can be asked, if it can be."""
        self._ask = None if self._too_slow else ask

    async def of(self, workspace: str) -> Roots:
        """Return the client's roots, or *workspace*; a client that does not answer at once is not asked again."""
        found: Roots = ()
        if self._ask:
            try:
                async with asyncio.timeout(SECONDS):
                    found = await self._ask()
            except TimeoutError:
                self._too_slow, self._ask = True, None
        return found[:MOST] or ([(Path(workspace).as_uri(), Path(workspace).name)] if workspace else [])
