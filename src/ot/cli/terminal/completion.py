"""What a shell completes: names of servers, packs and tools, from the configuration and without starting anything."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ot.workspace import Workspace


def complete_servers(incomplete: str) -> list[str]:
    """Return the servers whose names begin like this."""
    return _beginning(incomplete, lambda app: app.picture.loaded.config.servers)


def complete_packs(incomplete: str) -> list[str]:
    """Return the packs whose names begin like this."""
    return _beginning(incomplete, lambda app: app.picture.registry.packs)


def complete_pack_list(incomplete: str) -> list[str]:
    """Complete the last of several comma-separated packs."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{pack}" for pack in complete_packs(last) if pack not in before.split(",")]


def complete_tools(incomplete: str) -> list[str]:
    """Return the packs that begin like this, or after a dot the tools."""
    if "." not in incomplete:
        return complete_packs(incomplete)
    return _beginning(incomplete, lambda app: app.tool_names())


def _beginning(incomplete: str, names: Callable[[Workspace], Iterable[str]]) -> list[str]:
    """Return the *names* that begin like this; a configuration that cannot be read has none to offer."""
    from ot.cli.terminal.own_workspace import workspace_at_rest
    from ot.errors import OneToolError

    logging.disable()  # a warning would be written into the line that is being typed
    try:
        with workspace_at_rest() as app:
            return sorted(name for name in names(app) if name.startswith(incomplete))
    except OneToolError:
        return []
    finally:
        logging.disable(logging.NOTSET)
