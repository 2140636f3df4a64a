"""Carries calls out at proxied MCP servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import anyio.to_thread

from ot.errors import OneToolError, ResultError, ResultTooLarge, ServerUnavailable, ToolError, ToolFailed, redact_error
from ot.execution.call_context import CallContext
from ot.proxied.call import ServerCall
from ot.proxied.call_trace import CallTrace
from ot.proxied.hosts import on_a_host
from ot.proxied.pack_replies import CopiedResult, PackReply, StoredForm
from ot.proxied.pool import ServerPool
from ot.proxied.spec import ServerSpec
from ot.registry.proxy_target import ProxyTarget
from ot.registry.tool import Tool
from ot.values.parts import Unread

if TYPE_CHECKING:
    from ot.proxied.connection import ServerConnection

Learn = Callable[[Tool, Any], None]
"""Takes note of what a tool returned; must be quick and must not raise."""


class StoreCopy(Protocol):
    """Takes the copy of a stored result into the result store."""

    def __call__(self, file: BinaryIO, form: StoredForm, *, tool: str, owner: str) -> str:
        """Return the handle; blocks, so it is called in a thread."""
        ...


class McpProxyBackend:
    """One picture's servers, reached over the pool that outlives it; a tool's ``target`` is a ProxyTarget."""

    def __init__(
        self,
        pool: ServerPool,
        specs: Mapping[str, ServerSpec],
        learn: Learn | None = None,
        store: StoreCopy | None = None,
    ) -> None:
        """Call the servers of *specs*, by name; *learn* sees what successful calls return.

        What another OneTool has stored because it is too large goes to *store*.
        """
        self._pool = pool
        self._specs = specs
        self._learn = learn
        self._store = store

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Connect the server; that has a deadline of its own."""
        target = ProxyTarget.of(tool.target)
        hosts = self._hosts(target, context)
        await self._work_with_login(target, context, lambda: on_a_host(hosts, lambda connection, _: connection.ready()))

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value; non-text blocks are told to the caller."""
        target = ProxyTarget.of(tool.target)
        redactor = self._spec(target, context).redactor
        hosts, call = self._hosts(target, context), ServerCall(tool, target, arguments, context, redactor)

        async def use(connection: ServerConnection, elsewhere: bool) -> tuple[ServerConnection, Any]:
            trace = CallTrace(context, elsewhere)
            return connection, await connection.use(tool.full_name, trace, call)

        connection, result = await self._work_with_login(target, context, lambda: on_a_host(hosts, use))
        if isinstance(result, PackReply):
            connection.note_revision(result.revision)
        value = await call.value(result, connection.definition(target.tool).get("outputSchema"))
        if isinstance(value, CopiedResult):
            raise await self._store_value(tool, value, context)
        if self._learn and not isinstance(value, Unread):
            self._learn(tool, value)
        return value

    async def _store_value(self, tool: Tool, copy: CopiedResult, context: CallContext) -> ToolError:
        with copy.file as file:
            if self._store is None:
                return ResultTooLarge(tool.full_name, copy.size)
            put = partial(self._store, file, copy.form, tool=tool.full_name, owner=context.caller.principal)
            try:
                return ResultTooLarge(tool.full_name, copy.size, await anyio.to_thread.run_sync(put))
            except (OSError, ResultError) as error:
                return ToolFailed(tool.full_name, "ResultTooLarge", f"its large value could not be stored: {error}")

    async def _work_with_login[T](
        self, target: ProxyTarget, context: CallContext, work: Callable[[], Awaitable[T]]
    ) -> T:
        """Return the result of *work*, asking the run's user to log in first if necessary."""
        spec = self._spec(target, context)
        try:
            if spec.account is None:
                return await work()
            return await self._pool.logins.retry_after_login(
                spec.account, context.caller, work, context.run_id, context.clock
            )
        except OneToolError as error:
            redact_error(error, spec.redactor().text)
            raise

    def _hosts(self, target: ProxyTarget, context: CallContext) -> list[ServerConnection]:
        return self._pool.connections(self._spec(target, context))

    def _spec(self, target: ProxyTarget, context: CallContext) -> ServerSpec:
        if target.server not in self._specs:
            raise ServerUnavailable(target.server, "it is no longer configured")
        return self._specs[target.server].of(context.caller.principal)
