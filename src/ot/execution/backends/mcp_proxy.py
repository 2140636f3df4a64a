"""Carries calls out at proxied MCP servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ot.errors import ServerUnavailable
from ot.execution.backends.backend import BackendHealth, CallContext
from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.server_call import ServerCall
from ot.execution.servers.server_pool import ServerPool
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.tool import Tool


class McpProxyBackend:
    """One picture's servers, reached over the pool that outlives it.

    A tool's ``target`` is JSON: ``server``, and ``tool`` (the server's own name) or ``method``; ``names`` gives the
    server's own names of parameters that had to be renamed.
    """

    def __init__(self, pool: ServerPool, specs: Mapping[str, ServerSpec]) -> None:
        """Call the servers of *specs*, by name."""
        self._pool = pool
        self._specs = specs

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Connect the server; that has a deadline of its own."""
        await self._pool.prepare(self._spec(_target(tool)))

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value; blocks that are no text are told to the caller."""
        target = _target(tool)
        call = ServerCall(tool.full_name, target, arguments, context)
        result = await self._pool.use(self._spec(target), tool.full_name, CallTrace(context), call)
        return call.value(result, self._output_schema(target))

    def _spec(self, target: Mapping[str, Any]) -> ServerSpec:
        try:
            return self._specs[target["server"]]
        except KeyError:
            raise ServerUnavailable(str(target.get("server")), "it is no longer configured") from None

    def _output_schema(self, target: Mapping[str, Any]) -> Mapping[str, Any] | None:
        known = self._pool.definitions(target["server"])
        listed = known.tools if known else ()
        return next((tool.get("outputSchema") for tool in listed if tool.get("name") == target.get("tool")), None)

    async def health(self) -> BackendHealth:
        """Return how the servers that were used are."""
        states = self._pool.states()
        failed = any(state["state"] == "failed" for state in states.values())
        return BackendHealth("degraded" if failed else "ok", states)

    async def retire(self, pack: str) -> None:
        """Let the pack's calls end, then let go of its server."""
        self._pool.keep_only(spec.key for spec in self._specs.values() if spec.pack != pack)

    async def aclose(self) -> None:
        """Do nothing: the pool is closed by who made it."""


def _target(tool: Tool) -> dict[str, Any]:
    return json.loads(tool.target)
