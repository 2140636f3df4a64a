"""Carries calls out at proxied MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ot.errors import ServerUnavailable
from ot.execution.backends.backend import BackendHealth, CallContext
from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.server_call import ServerCall
from ot.execution.servers.server_pool import ServerPool
from ot.execution.servers.server_spec import ServerSpec
from ot.execution.unread import Unread
from ot.registry.proxy_target import ProxyTarget
from ot.registry.tool import Tool

Learn = Callable[[Tool, Any], None]
"""Takes note of what a tool returned; must be quick and must not raise."""


class McpProxyBackend:
    """One picture's servers, reached over the pool that outlives it; a tool's ``target`` is a ProxyTarget."""

    def __init__(self, pool: ServerPool, specs: Mapping[str, ServerSpec], learn: Learn | None = None) -> None:
        """Call the servers of *specs*, by name; *learn* sees what successful calls return."""
        self._pool = pool
        self._specs = specs
        self._learn = learn

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Connect the server; that has a deadline of its own."""
        await self._pool.prepare(self._spec(ProxyTarget.of(tool.target)))

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value; blocks that are no text are told to the caller."""
        target = ProxyTarget.of(tool.target)
        call = ServerCall(tool.full_name, target, arguments, context)
        result = await self._pool.use(self._spec(target), tool.full_name, CallTrace(context), call)
        value = call.value(result, self._pool.definition(target.server, target.tool).get("outputSchema"))
        if self._learn and not isinstance(value, Unread):
            self._learn(tool, value)
        return value

    def _spec(self, target: ProxyTarget) -> ServerSpec:
        try:
            return self._specs[target.server]
        except KeyError:
            raise ServerUnavailable(target.server, "it is no longer configured") from None

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
