"""Circuit: whether what processes share answers; once it does not, one task asks on, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from onetool_team.state.shared_state import StateUnavailable

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0


class Circuit:
    """Closed while all is well; open from a failure until *probe* succeeds."""

    def __init__(self, probe: Callable[[], Awaitable[None]], what: str = "the shared state") -> None:
        """Try *probe*, which raises StateUnavailable, again and again while *what* does not answer."""
        self._probe = probe
        self._what = what
        self._probing: asyncio.Task[None] | None = None
        self.trouble = ""
        """What is wrong, and since when; empty while all is well."""

    def open(self, why: str) -> str:
        """Note that a request has failed because of *why*, and return the words for it."""
        if not self.trouble:
            self.trouble = f"{self._what} is unreachable since {datetime.now(UTC):%H:%M:%S} UTC: {why}"
            logger.warning("%s", self.trouble)
            self._probing = asyncio.ensure_future(self._probe_until_reachable())
        return self.trouble

    async def _probe_until_reachable(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                await self._probe()
            except StateUnavailable as error:
                logger.debug("%s is still unreachable: %s", self._what, error)
            else:
                break
        logger.warning("%s is reachable again", self._what)
        self.trouble, self._probing = "", None

    async def aclose(self) -> None:
        """Stop trying."""
        if self._probing is not None:
            self._probing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._probing
