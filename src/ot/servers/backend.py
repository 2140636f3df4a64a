"""Carries calls out at proxied MCP servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ot.errors import ServerUnavailable
from ot.execution.call_context import CallContext
from ot.registry.proxy_target import ProxyTarget
from ot.registry.tool import Tool
from ot.servers.call import CallTrace, ServerCall
from ot.servers.pool import ServerPool
from ot.servers.spec import ServerSpec
from ot.values.parts import Unread

if TYPE_CHECKING:
    from ot.servers.connection import ServerConnection

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
        target = ProxyTarget.of(tool.target)
        await self._logged_in(target, context, self._connection(target, context).ready)

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value; blocks that are no text are told to the caller."""
        target = ProxyTarget.of(tool.target)
        connection, call = self._connection(target, context), ServerCall(tool.full_name, target, arguments, context)
        use = partial(connection.use, tool.full_name, CallTrace(context), call)
        result = await self._logged_in(target, context, use)
        value = call.value(result, connection.definition(target.tool).get("outputSchema"))
        if self._learn and not isinstance(value, Unread):
            self._learn(tool, value)
        return value

    async def _logged_in[T](self, target: ProxyTarget, context: CallContext, work: Callable[[], Awaitable[T]]) -> T:
        """Return what *work* returns, for which the user of the run may have to log in first."""
        account = self._spec(target, context).account
        if account is None:
            return await work()
        return await self._pool.logins.tried(account, context.caller, work, context.run_id, context.clock)

    def _connection(self, target: ProxyTarget, context: CallContext) -> ServerConnection:
        return self._pool.connection(self._spec(target, context))

    def _spec(self, target: ProxyTarget, context: CallContext) -> ServerSpec:
        if target.server not in self._specs:
            raise ServerUnavailable(target.server, "it is no longer configured")
        return self._specs[target.server].of(context.caller.principal)
