"""OperatorsPins: what is approved of servers, for the commands of whoever operates a team's server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from onetool_team.postgres.pins import PinRows
from onetool_team.postgres.team_rows import open_team_rows
from onetool_team.settings import SharedStore
from onetool_team.state.open_state import open_keys
from onetool_team.state.shared_state import StateUnavailable
from ot.config.load import Loaded, load_config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.errors import ConfigError
from ot.proxied.catalogue_files import FOLDER
from ot.proxied.pin_books import MakeBook, PinBook


def open_operators_pins(paths: Paths) -> OperatorsPins | None:
    """Return it where the configuration names a PostgreSQL.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    # The operator's own settings: those of a directory are nobody's on a team's server.
    loaded = load_config(replace(paths, project_dir=None, ignored=""), Trust(paths.global_dir))
    return OperatorsPins(loaded, paths) if loaded.config.section(SharedStore).postgres else None


class OperatorsPins:
    """Each method asks PostgreSQL, by a connection of its own, and waits for the answer.

    All of them raise ConfigError if there is none.
    """

    def __init__(self, loaded: Loaded, paths: Paths) -> None:
        """Ask the PostgreSQL that the settings name."""
        self._loaded = loaded
        self._directory = paths.global_dir / FOLDER

    def stamp(self, server: str, owner: str) -> object:
        """Return what is another one each time: a command looks anew."""
        return object()

    def read(self, server: str, owner: str) -> PinBook:
        """Return the book."""
        return self._wait(lambda rows: rows.read((server, owner))).book

    def record(self, server: str, owner: str, make: MakeBook) -> None:
        """Keep what *make* makes of the book."""
        self._wait(lambda rows: rows.make((server, owner), make))

    def drop(self, server: str, owner: str) -> None:
        """Do nothing: nothing is kept here."""

    def books(self) -> list[PinBook]:
        """Return all of them."""
        return self._wait(PinRows.all)

    async def settled(self) -> None:
        """Return: each method has waited."""

    def _wait[T](self, work: Callable[[PinRows], Awaitable[T]]) -> T:
        async def ask() -> T:
            settings, secrets = self._loaded.config.section(SharedStore), self._loaded.secrets
            keys = open_keys(settings, secrets)
            rows = open_team_rows(settings, secrets, keys) if keys else None
            assert rows
            try:
                return await work(PinRows(rows, self._directory))
            except StateUnavailable as error:
                raise ConfigError(f"what is approved of servers cannot be read: {error}") from None
            finally:
                await rows.sessions.aclose()

        with ThreadPoolExecutor(1) as pool:  # a command may have an event loop already
            return pool.submit(asyncio.run, ask()).result()
