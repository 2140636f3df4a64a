"""Connects to a server once and brings back what it offers."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Any, TextIO

import anyio

from ot.errors import ServerUnavailable
from ot.execution.servers.server_spec import ServerSpec
from ot.execution.workers.child_environ import worker_environ
from ot.registry.server_definitions import ServerDefinitions

if TYPE_CHECKING:
    from fastmcp import Client

SHOWN_LINES = 5
SHOWN_CHARACTERS = 600


async def look_at(spec: ServerSpec) -> ServerDefinitions:
    """Return what the server offers; its process has ended when this returns.

    Raises:
        ServerUnavailable: It cannot be started, reached, or does not answer within ``spec.start_seconds``.
    """
    if spec.problem:
        raise ServerUnavailable(spec.name, spec.problem)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        # Made before the clock starts: the first import of the protocol's library takes seconds.
        client = _client(spec, log)
        try:
            with anyio.fail_after(spec.start_seconds):
                return await _definitions(client)
        except TimeoutError:
            why = f"it did not answer within {spec.start_seconds:g} s"
        except Exception as error:  # noqa: BLE001 - the server's code and the protocol's library raise as they like
            why = str(error) or type(error).__name__
        raise ServerUnavailable(spec.name, "\n".join([why, *_last_lines(log)]))


async def _definitions(client: Client[Any]) -> ServerDefinitions:
    async with client:
        tools = await client.list_tools()
        about: Any = client.initialize_result
        return ServerDefinitions(
            tools=tuple(tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools),
            instructions=getattr(about, "instructions", "") or "",
            listed_at=time.time(),
        )


def _client(spec: ServerSpec, log: TextIO) -> Client[Any]:
    from fastmcp import Client  # noqa: PLC0415 - importing FastMCP costs more than all else together
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport  # noqa: PLC0415 - as above

    if spec.url:
        return Client(StreamableHttpTransport(spec.url, headers=dict(spec.headers)))
    env = {**worker_environ(os.environ), **spec.env}
    return Client(StdioTransport(spec.command, list(spec.args), env, spec.cwd or None, keep_alive=False, log_file=log))


def _last_lines(log: TextIO) -> list[str]:
    log.seek(0)
    lines = [line.strip() for line in log.read()[-20 * SHOWN_CHARACTERS :].splitlines() if line.strip()]
    return [f"  it said: {line[:SHOWN_CHARACTERS]}" for line in lines[-SHOWN_LINES:]]
