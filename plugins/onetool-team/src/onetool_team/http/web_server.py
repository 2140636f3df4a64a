"""The web server: uvicorn, with connections of our own kind."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Generator
from functools import partial
from typing import override

import uvicorn

from onetool_team.http.asgi import AsgiApp
from onetool_team.http.connections import Connections
from onetool_team.http.guarded_protocol import GuardedProtocol
from onetool_team.http.listen_address import turn_newcomers_away
from onetool_team.settings import Http

IDLE_SECONDS = 75
"""How long a connection waits for its next request: longer than balancers keep theirs."""
OTHER_FILES = 1024
"""What is open beside the connections of clients: engines, servers, Redis."""
LAST_SECONDS = 1
"""What is still open when everything has been answered, such as a stream of news, is cut off after this."""
SETTLE_SECONDS = 0.1
"""How long connections that have begun to open may take until they are accepted: a few ways over a network."""
LOOK_SECONDS = 0.01


class WebServer(uvicorn.Server):
    """uvicorn with bounds on requests that are not whole yet, which leaves signals to us."""

    def __init__(self, settings: Http) -> None:
        """Keep to *settings*."""
        self._crowd = Connections(settings.connections, settings.connections_per_address)
        limits = {"seconds": settings.request_seconds, "crowd": self._crowd}
        _allow_files(settings.connections + OTHER_FILES)
        config = uvicorn.Config(
            _nothing,
            http=partial(GuardedProtocol, **limits),  # pyright: ignore[reportArgumentType] - it is only ever called
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=LAST_SECONDS,
        )
        super().__init__(config)

    async def answer(self, app: AsgiApp, listening: socket.socket) -> None:
        """Answer connections to *listening* until it should exit."""
        self.config.app = app  # pyright: ignore[reportAttributeAccessIssue] - ours are plain mappings
        await self.serve(sockets=[listening])

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; what was sent before the end is heard and answered, as nobody may send it to another replica again."""
        for listening in sockets or ():
            turn_newcomers_away(listening)
        await asyncio.sleep(SETTLE_SECONDS)
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                while any(map(_is_heard, self.server_state.connections)):  # noqa: ASYNC110 - uvicorn tells nobody
                    await asyncio.sleep(LOOK_SECONDS)
        await super().shutdown(sockets)

    def open_connections(self) -> int:
        """Return how many there are."""
        return len(self.server_state.connections)

    def count_answering(self) -> int:
        """Return how many have a request that is being answered."""
        return self._crowd.answered

    @contextlib.contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


async def _nothing(*_: object) -> None:
    raise NotImplementedError


def _is_heard(connection: object) -> bool:
    return isinstance(connection, GuardedProtocol) and connection.is_arriving


def _allow_files(number: int) -> None:
    """Let the process have *number* files open, where it may: else strangers' connections could take all there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
