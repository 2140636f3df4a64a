"""SharedHome: replicas without PostgreSQL keep notes and approvals in one directory; one with another is refused."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

from onetool_team.state.shared_state import SharedState, StateUnavailable
from ot.errors import ConfigError
from ot.files.private_file import hold_lock, read_regular, write_private

logger = logging.getLogger(__name__)

MARK = "replicas-id"
KEY = "home"
LOOK_SECONDS = 5.0
"""How often it is looked whether Redis is there again, or was restarted empty."""
OTHER = "{} is not the directory that the other replicas of this server have"
HINT = (
    "set state.postgres, or mount one directory there in all of them; if this one is to replace theirs, "
    "end them and delete the key onetool:home (state.prefix is its beginning) in Redis"
)


class SharedHome:
    """A mark in the directory, on which all who have it agree through the shared state."""

    def __init__(self, state: SharedState, directory: Path) -> None:
        """Read the mark of *directory*, made now if there is none.

        Raises:
            ConfigError: It can be neither read nor made.
        """
        self._state, self._directory = state, directory
        self._watching: asyncio.Task[None] | None = None
        file = directory / MARK
        try:
            with hold_lock(file):
                self.mark = _read(file) or _make(file)
        except OSError as error:
            raise ConfigError(f"{file} cannot be made: {error}", hint="replicas need a directory to share") from None

    async def require(self) -> None:
        """Agree with the others, if they can be asked now.

        Raises:
            ConfigError: They have another directory.
        """
        with contextlib.suppress(StateUnavailable):
            if not await self._agrees():
                raise ConfigError(OTHER.format(self._directory), hint=HINT)

    def watch(self, refuse: Callable[[str], object]) -> None:
        """Go on asking, and call *refuse* with the reason once the others have another directory."""
        self._watching = asyncio.ensure_future(self._watch(refuse))

    async def aclose(self) -> None:
        """Ask no more."""
        if self._watching:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    async def _watch(self, refuse: Callable[[str], object]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.require()
            except ConfigError as error:
                logger.error("not ready: %s: %s", error, error.hint)
                refuse(str(error))
                return

    async def _agrees(self) -> bool:
        if await self._state.add(KEY, self.mark):
            return True
        return await self._state.get(KEY) in (None, self.mark)


def _read(file: Path) -> bytes:
    try:
        return read_regular(file, 100, follow=False).data.strip()
    except FileNotFoundError:
        return b""


def _make(file: Path) -> bytes:
    mark = secrets.token_hex(16)
    write_private(file, f"{mark}\n")
    return mark.encode()
