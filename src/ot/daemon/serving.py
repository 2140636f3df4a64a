"""Serves all clients of this user from one host, which a resident workspace keeps warm between them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

from ot.config.paths import Paths
from ot.daemon.life import Life
from ot.errors import OneToolError
from ot.host import Host
from ot.logs import LogFile, configure_logs, end_logs, log_path
from ot.workspace import Workspace

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for an engine that is still starting, which could not be closed."""


async def serve(life: Life) -> None:
    """Serve those who connect to the socket of *life*, until nobody needs it."""
    paths = Paths.find(os.environ, Path.home())
    host = Host(paths)
    resident = _resident(host, paths)
    if resident:
        resident.spawn_engine()  # it gets warm while the protocol's library is imported
    from ot.server import import_protocol  # noqa: PLC0415 - takes seconds, and the engine should not wait for it

    import_protocol()
    from ot.daemon.lazy_modules import import_lazy_modules  # noqa: PLC0415 - as above
    from ot.daemon.shared_server import SharedServer  # noqa: PLC0415 - as above
    from ot.server.idle_garbage import collect_between_replies  # noqa: PLC0415 - as above
    from ot.server.serve import Watchdog  # noqa: PLC0415 - as above

    watchdog = Watchdog()
    server = SharedServer(life, host)
    collect_between_replies()
    for number, now in ((signal.SIGTERM, False), (signal.SIGINT, True)):
        asyncio.get_running_loop().add_signal_handler(number, lambda now=now: server.stop(now=now))
    starting = asyncio.ensure_future(_started(resident))
    importing = asyncio.ensure_future(import_lazy_modules())
    try:
        await server.serve()
    finally:
        importing.cancel()
        await asyncio.wait((starting,), timeout=START_SECONDS)
        if resident:
            await resident.aclose()
        await host.aclose()
        end_logs()
        watchdog.release()


def _resident(host: Host, paths: Paths) -> Workspace | None:
    """Return a workspace that holds the engine of the user's own settings, so that it outlives each client."""
    try:
        resident = Workspace(host, paths)
    except OneToolError as error:  # each client is told of it by its own
        logger.warning("nothing is kept warm: %s", error)
        return None
    _start_log(resident)
    return resident


async def _started(resident: Workspace | None) -> None:
    try:
        if resident:
            await resident.start()
    except OneToolError as error:  # as above
        logger.warning("no engine is kept warm: %s", error)


def _start_log(resident: Workspace) -> None:
    """Write one log for all clients, without the secrets of any."""
    loaded = resident.picture.loaded
    logs = loaded.config.logs
    file = LogFile(log_path(loaded.state_dir)) if logs.file else None
    redact = resident.host.redaction.redact
    configure_logs(logs.level, redact, format=logs.format, file=file, terminal_level="WARNING")
