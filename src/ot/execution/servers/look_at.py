"""Connects to a server once and brings back what it offers."""

from __future__ import annotations

import importlib

from ot.errors import ServerUnavailable
from ot.execution.servers.server_connection import ServerConnection
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.server_definitions import ServerDefinitions


async def look_at(spec: ServerSpec) -> ServerDefinitions:
    """Return what the server offers; its process has ended when this returns.

    Raises:
        ServerUnavailable: It cannot be started, reached, or does not answer within ``spec.start_seconds``.
    """
    if not spec.problem:
        # Before the clock starts: the first import of the protocol's library takes seconds.
        importlib.import_module("ot.execution.servers.live_session")
    connection = ServerConnection(spec, lambda server, definitions: None)
    try:
        return await connection.listed()
    except ServerUnavailable as error:
        # One look: nothing is tried again, so that is not said either.
        raise ServerUnavailable(spec.name, error.why) from None
    finally:
        await connection.aclose()
