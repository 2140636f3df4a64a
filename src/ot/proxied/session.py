"""LiveSession: one connection to a server, from its handshake to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

# Its rich log handler blocks the whole server for seconds on a long text; it must be off before the import.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ["FASTMCP_LOG_ENABLED"] = "false"  # its lines are written as ours are, whatever its user prefers
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it reads an .env file of the working directory

import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports.base import SessionKwargs
from mcp import MCPError
from mcp.client.subscriptions import listen
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

from ot.proxied.asking_servers import Asks
from ot.proxied.call import wire_form
from ot.proxied.call_trace import CallTrace, current_trace
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.messages import StrayOutput
from ot.proxied.openapi.transport import OpenApiTransport
from ot.proxied.place import ClientRoots
from ot.proxied.questions import answer_elicitation
from ot.proxied.spec import ServerSpec
from ot.proxied.transports import HttpTransport, StdioTransport
from ot.version import installed_version

logger = logging.getLogger(__name__)

MAX_PAGES = 100
DRAIN_SECONDS = 30.0
UNKNOWN_TRANSPORT = frozenset({400, 404, 405})
"""What a server of the older transport answers to a message at the address of its events."""


class _PlainClient(Client[Any]):
    """A client that claims none of the library's own extensions: a proxied call is answered, or it fails."""

    _auto_internal_extensions = False


class LiveSession:
    """A connected client, and the calls that are on it."""

    def __init__(
        self,
        spec: ServerSpec,
        stray: StrayOutput,
        changed: Callable[[], None],
        mode: str,
        roots: ClientRoots,
        asks: Asks = lambda: True,
    ) -> None:
        """Prepare a connection in *mode*: ``auto`` tries the newer protocol first; *changed* hears of new lists.

        *asks* hears when the server asks its client something.
        """
        self.spec = spec
        self.trace = CallTrace()
        """How the handshake went."""
        self.lost = ""
        """Why it was given up, when it was."""
        self._traces: list[CallTrace] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._changed = changed
        self._client_roots = roots
        self._asks = asks
        self._listening: asyncio.Task[None] | None = None
        callbacks: SessionKwargs = {
            "elicitation_callback": self._elicit,
            "logging_callback": self._log,
            "message_handler": self._hear,
            "client_info": types.Implementation(name="onetool", version=installed_version()),
        }
        if spec.scope != "shared":
            callbacks["list_roots_callback"] = self._roots
        transport = self._transport = _transport(spec, stray, callbacks, changed)
        self.process = transport if isinstance(transport, StdioTransport) else None
        self._document = transport if isinstance(transport, OpenApiTransport) else None
        self.client: Client[Any] = _PlainClient(transport, mode=mode, init_timeout=0)

    async def open(self) -> None:
        """Connect and agree on a protocol; the caller sets the time for it.

        Raises:
            Exception: Whatever the server, the system or the network did.
        """
        current_trace.set(self.trace)
        await self.client.__aenter__()
        tools = self.client.server_capabilities.tools if self.client.server_capabilities else None
        if self.modern and tools and tools.list_changed:
            self._listening = asyncio.ensure_future(self._listen())

    @property
    def modern(self) -> bool:
        """Whether the newer protocol was agreed on."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def over(self) -> bool:
        """Whether it can carry no more calls."""
        return self._transport.over or not self.client.is_connected()

    @property
    def may_speak_sse(self) -> bool:
        """Whether its refusal is that of a server that knows only the older transport, and that may be tried."""
        may = self.spec.url and not self.spec.openapi and not self.spec.transport
        return bool(may) and self.trace.status in UNKNOWN_TRANSPORT

    async def retire(self) -> None:
        """End it; calls over HTTP may end before, for the trouble of one is not the trouble of all."""
        if self.process is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), DRAIN_SECONDS)
        await self.end()

    async def end(self) -> None:
        """Say goodbye and let go of everything."""
        if self._listening:
            self._listening.cancel()
        # How an unwanted connection ends does not matter.
        with suppress(Exception):
            await self.client.close()

    # ---------------------------------------------------------------- requests

    async def ask(self, trace: CallTrace, work: Callable[[Client[Any]], Awaitable[Any]]) -> Any:
        """Return the result of *work* on the server; *trace* records how far it got."""
        token = current_trace.set(trace)
        self._traces.append(trace)
        self._idle.clear()
        try:
            return await work(self.client)
        finally:
            trace.over = True
            self._traces.remove(trace)
            current_trace.reset(token)
            if not self._traces:
                self._idle.set()

    async def definitions(self) -> ServerDefinitions:
        """Return the definitions that the server lists."""
        if self._document:
            return self._document.definitions
        client, capabilities = self.client, self.client.server_capabilities
        tools = await _list_or_nothing(client.list_tools(MAX_PAGES))
        prompts = (
            await _list_or_nothing(client.list_prompts(MAX_PAGES)) if capabilities and capabilities.prompts else []
        )
        return ServerDefinitions(
            tools=tuple(wire_form(tool) for tool in tools),
            prompts=tuple(wire_form(prompt) for prompt in prompts),
            has_resources=bool(capabilities and capabilities.resources),
            instructions=client.instructions or "",
            server_info=wire_form(client.server_info) if client.server_info else {},
            listed_at=time.time(),
        )

    # ---------------------------------------------------------------- what the server wants

    async def _elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        # The newer protocol asks inside the call that it belongs to. The older one does not say: the last call
        # is the one that its user remembers.
        has_one_client, trace = self._asks(), current_trace.get()
        if trace is None or trace is self.trace:
            if not has_one_client:
                logger.warning("the server %s asked something, and which client it meant is not known", self.spec.name)
                return types.ElicitResult(action="cancel")
            trace = self._traces[-1] if self._traces else self.trace
        trace.begun = True
        return await answer_elicitation(trace.context, params, self.spec.name)

    async def _roots(self, context: Any) -> types.ListRootsResult:
        self._asks()
        found = await self._client_roots.of(self.spec.workspace, self.spec.connection)
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(uri), name=name or None) for uri, name in found])

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        logging.getLogger(f"ot.proxied.{self.spec.name}").debug("%s: %s", params.level, str(params.data)[:2000])

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()
        elif isinstance(message, Exception):
            logger.debug("the connection says: %s", message)

    async def _listen(self) -> None:
        """Hear of new lists; a server that does not tell after all is asked again when it is connected next."""
        try:
            async with listen(self.client.session, tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._changed()
        except Exception as error:  # noqa: BLE001 - the server's own doing, and only news are lost
            logger.debug("no more news of lists: %s", error)


def _transport(
    spec: ServerSpec, stray: StrayOutput, callbacks: SessionKwargs, changed: Callable[[], None]
) -> HttpTransport | OpenApiTransport | StdioTransport:
    if spec.openapi:
        return OpenApiTransport(spec, callbacks)
    return HttpTransport(spec, callbacks) if spec.url else StdioTransport(spec, stray, callbacks, changed)


async def _list_or_nothing(listing: Awaitable[list[Any]]) -> list[Any]:
    try:
        return await listing
    except MCPError as error:
        if error.code == types.METHOD_NOT_FOUND:
            return []
        raise
