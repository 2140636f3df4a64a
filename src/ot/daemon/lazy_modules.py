"""Modules that a server imports when it first needs them: a shared one imports them while they are of its version."""

from __future__ import annotations

import asyncio
import gc
import pkgutil
from contextlib import suppress
from importlib import import_module

from ot import hooks

PACKS = "ot_tools"
LAZY = (
    "ot.background.carrying_out",
    "ot.background.held_runs",
    "ot.background.local_queue",
    "ot.background.packs_used",
    "ot.background.run_tools",
    "ot.execution.heavy_calls",
    "ot.execution.question_form",
    "ot.execution.waiting_questions",
    "ot.installation",
    "ot.registry.other_words",
    "ot.server.question_places",
    "ot.servers.auth.client_credentials",
    "ot.servers.auth.login",
    "ot.servers.auth.loopback",
    "ot.servers.connection",
    "ot.servers.openapi.tools",
    "ot.servers.questions",
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
