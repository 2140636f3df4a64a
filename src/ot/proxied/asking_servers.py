"""AskingServers: those that ask their client something, which no two clients can share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from ot.proxied.catalogue_files import server_file, write_json
from ot.registry.proxy_target import ServerIdentity

logger = logging.getLogger(__name__)

type Asks = Callable[[], bool]
"""Takes note that a server asks its client something, and returns whether it has only one."""


class AskingServers:
    """Remembers which servers have asked for an answer or for roots: what they hear of one client is not for another.

    What was seen once is kept beyond the process: the next time, each client has a server of its own from the start.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Keep what is noted in *directory*, where there is one."""
        self.count = 0
        """How many were noted here."""
        self._directory = directory
        self._known: dict[ServerIdentity, bool] = {}

    def holds(self, identity: ServerIdentity) -> bool:
        """Return whether the server has ever asked its client something."""
        if identity not in self._known:
            file = self._file(identity)
            self._known[identity] = file is not None and file.exists()
        return self._known[identity]

    def note(self, identity: ServerIdentity) -> None:
        """Take note that the server asks its client something."""
        if self.holds(identity):
            return
        self._known[identity] = True
        self.count += 1
        if file := self._file(identity):
            try:
                write_json(file, {"server": identity.server})
            except OSError as error:
                logger.warning("that %s asks its clients could not be remembered: %s", identity.server, error)

    def _file(self, identity: ServerIdentity) -> Path | None:
        return self._directory and server_file(self._directory, identity.server, "asks", identity.written)
