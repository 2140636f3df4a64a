"""Serves all clients of this user from one host, which a resident workspace keeps warm between them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

from ot.config.paths import Paths
from ot.daemon.life import Life
from ot.daemon.shared_server import SharedServer
from ot.errors import OneToolError
from ot.host import Host
from ot.logs import LogFile, configure_logs, end_logs, log_path
from ot.server.serve import Watchdog
from ot.workspace import Workspace

logger = logging.getLogger(__name__)


async def serve(life: Life) -> None:
    """Serve those who connect to the socket of *life*, until nobody needs it."""
    watchdog = Watchdog()
    paths = Paths.find(os.environ, Path.home())
    host = Host(paths)
    server = SharedServer(life, host)
    resident = await _resident(host, paths, server)
    for number, now in ((signal.SIGTERM, False), (signal.SIGINT, True)):
        asyncio.get_running_loop().add_signal_handler(number, lambda now=now: server.stop(now=now))
    try:
        await server.serve()
    finally:
        if resident:
            await resident.aclose()
        await host.aclose()
        end_logs()
        watchdog.release()


async def _resident(host: Host, paths: Paths, server: SharedServer) -> Workspace | None:
    """Return a workspace that holds the engine of the user's own settings, so that it outlives each client."""
    try:
        resident = Workspace(host, paths)
        _start_log(resident, server)
        await resident.start()
    except OneToolError as error:  # each client is told of it by its own
        logger.warning("nothing is kept warm: %s", error)
        return None
    return resident


def _start_log(resident: Workspace, server: SharedServer) -> None:
    """Write one log for all clients, without the secrets of any."""
    loaded = resident.picture.loaded
    logs = loaded.config.logs
    file = LogFile(log_path(loaded.state_dir), max_bytes=logs.max_bytes, files=logs.files) if logs.file else None
    server.redactors[resident] = lambda text: resident.picture.loaded.secrets.redact(text)

    def redact(text: str) -> str:
        for one in list(server.redactors.values()):
            text = one(text)
        return text

    configure_logs(logs.level, redact, format=logs.format, file=file, terminal_level="WARNING")
