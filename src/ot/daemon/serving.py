"""Serves all clients of this user from one host, which a resident workspace keeps warm between them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pkgutil
import signal
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ot import hooks
from ot.config.paths import Paths
from ot.daemon.server_lock import ServerLock
from ot.errors import OneToolError
from ot.host import Host
from ot.logs import LogFile, configure_logs, end_logs, log_path
from ot.workspace import Workspace

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for an engine that is still starting, which could not be closed."""


async def serve(lock: ServerLock) -> None:
    """Serve those who connect to the socket of *lock*, until nobody needs it."""
    paths = Paths.find(os.environ, Path.home())
    host = Host(paths)
    resident = _resident(host, paths)
    if resident:
        resident.spawn_engine()  # it gets warm while the protocol's library is imported
    from ot.server import import_protocol  # noqa: PLC0415 - takes seconds, and the engine should not wait for it

    import_protocol()
    from ot.daemon.shared_server import SharedServer  # noqa: PLC0415 - as above
    from ot.server.idle_garbage import collect_between_replies  # noqa: PLC0415 - as above
    from ot.server.serve import Watchdog  # noqa: PLC0415 - as above

    watchdog = Watchdog()
    server = SharedServer(lock, host)
    collect_between_replies()
    for number, now in ((signal.SIGTERM, False), (signal.SIGINT, True)):
        asyncio.get_running_loop().add_signal_handler(number, lambda now=now: server.stop(now=now))
    starting = asyncio.ensure_future(_start_resident(resident))
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


async def _start_resident(resident: Workspace | None) -> None:
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


# ---------------------------------------------------------------- what is imported late

PACKS = "ot_tools"
LAZY = (
    "ot.background.carrying_out",
    "ot.background.held_runs",
    "ot.background.local_queue",
    "ot.background.questions",
    "ot.background.run_tools",
    "ot.execution.heavy_calls",
    "ot.execution.question_form",
    "ot.execution.waiting_questions",
    "ot.installation",
    "ot.introspect.save_program",
    "ot.notes.notes_of_undo",
    "ot.registry.other_words",
    "ot.server.question_places",
    "ot.proxied.auth.client_credentials",
    "ot.proxied.auth.login",
    "ot.proxied.auth.loopback",
    "ot.proxied.connection",
    "ot.proxied.openapi.tools",
    "ot.proxied.questions",
    "ot.runtime.cassettes.recording",
    "ot.stats.html_report",
    "ot.stats.query",
    "ot.stats.sqlite_sink",
)
FOR_COMMANDS = ("ot.cli.show", "ot.cli.tools")
LIBRARIES = (
    "difflib",
    "griffe",
    "jsonschema_rs",
    "packaging.requirements",
    "rapidfuzz.fuzz",
    "rapidfuzz.process",
    "re2",
    "yaml",
)
FIRST_SECONDS, PAUSE_SECONDS = 2.0, 0.05
"""The clients that started the server come first, and those who come meanwhile have turns."""


async def import_lazy_modules() -> None:
    """Import, one by one, what would otherwise be read from disk after an upgrade."""
    packs = [f"{PACKS}.{found.name}" for found in pkgutil.iter_modules(import_module(PACKS).__path__)]
    of_plugins = [hook.module for hook in hooks.hooks(hooks.STORES)]
    await asyncio.sleep(FIRST_SECONDS)
    for name in (*LAZY, *FOR_COMMANDS, *packs, *of_plugins, *LIBRARIES):
        with suppress(ImportError):  # not on every system, or only with an extra
            await asyncio.to_thread(import_module, name)  # beside the loop: a client waits two seconds for its welcome
        await asyncio.sleep(PAUSE_SECONDS)
    gc.freeze()  # they stay, and need not be looked through for garbage
