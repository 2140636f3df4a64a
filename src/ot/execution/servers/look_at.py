"""Connects to a server once and brings back what it offers."""

from __future__ import annotations

from ot.errors import ServerUnavailable
from ot.execution.servers.server_backoff import ServerBackoff
from ot.execution.servers.server_connection import ServerConnection
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.server_definitions import ServerDefinitions


async def look_at(spec: ServerSpec) -> ServerDefinitions:
    """Return what the server offers; its process has ended when this returns.

    Raises:
        ServerUnavailable: It cannot be started, reached, or does not answer within ``spec.start_seconds``.
    """
    if spec.problem:
        raise ServerUnavailable(spec.name, spec.problem)
    connection = ServerConnection(spec, lambda _name, _definitions: None, ServerBackoff())
    try:
        return await connection.listed()
    except ServerUnavailable as error:
        raise ServerUnavailable(error.server, error.why) from None  # nobody tries it again
    finally:
        await connection.aclose()
