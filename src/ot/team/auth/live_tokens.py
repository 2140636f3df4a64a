"""LiveTokens: named tokens as the configuration has them now, so that one which is removed is refused at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import anyio.to_thread

from ot.config.load import Loaded
from ot.errors import OneToolError
from ot.registry.freshness import Freshness
from ot.team.auth.static_tokens import StaticTokens
from ot.team.identity import Identity

logger = logging.getLogger(__name__)


class LiveTokens:
    """Looks at the configuration's files before each token, which costs a few microseconds."""

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded]) -> None:
        """Begin with the tokens of *loaded*; when its files change, *load* reads them again."""
        self._load = load
        self._turn = asyncio.Lock()
        self._files = loaded.files
        self._freshness = Freshness(loaded.files, {})
        self._tokens = StaticTokens(loaded.config.http.tokens)

    async def identify(self, token: str) -> Identity:
        """Return whose *token* it is; see ``Authenticator``."""
        if self._freshness.is_stale():
            async with self._turn:
                await self._refresh()
        return await self._tokens.identify(token)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    async def _refresh(self) -> None:
        if not self._freshness.is_stale():
            return  # somebody else was quicker
        # Stamped before it is read: what changes meanwhile is noticed at the next token.
        stamped = Freshness(self._files, {})
        try:
            loaded = await anyio.to_thread.run_sync(self._load)
        except OneToolError as error:
            logger.warning("the changed configuration cannot be used, and tokens stay as they were: %s", error)
            self._freshness = stamped
            return
        self._freshness = stamped if loaded.files == self._files else Freshness(loaded.files, {})
        self._files = loaded.files
        self._tokens = StaticTokens(loaded.config.http.tokens)
