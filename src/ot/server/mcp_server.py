"""The MCP face: one server, one tool, three resources."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from typing import Any, Protocol

# Its rich log handler blocks the whole server for seconds on a long error text; it must be off before the import.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.tools import ToolResult
from mcp_types import TextContent, ToolAnnotations

from ot.errors import OneToolError
from ot.runtime.pack_proxy import Progress, TellProgress
from ot.runtime.reply import Reply

PROGRESS_SECONDS = 5.0
NEWS_PAUSE_SECONDS = 0.1
"""A tool that tells of every line does not flood the client."""

INSTRUCTIONS = (
    "One tool, run, executes a Python program that calls packs of tools. "
    """Start with run('ot.help(query="words of the task")'); """
    "then do the whole task in one program and return only what matters."
)
DESCRIPTION = """\
Run a Python program. Its last expression (or return) is the result; print() is returned too.
Tools are pack.tool(key=value). Find them: ot.packs(), ot.tools(pattern="read"), ot.help(query="search files").
Compose in code: loop, filter, join; return little. Plain calls need no await; in parallel:
await asyncio.gather(*[file.read(path=p) for p in paths])
A large result is stored; page it: ot.result(handle="...", offset=1, limit=100, search="regex").
__format__ = "json"|"json_h"|"yml"|"yml_h"|"raw" sets the output.
"""
SANDBOX = {
    "portable": """\
Sandboxed: files, network and environment only through tools. Modules: asyncio base64 bisect collections copy csv
dataclasses datetime decimal functools hashlib itertools json math random re time.
Not available: yield, del, inheritance, other modules.""",
    "exact": """\
Full Python with its standard library. Sandboxed: files, network, processes and environment only through tools.""",
    "trusted": "Full Python with its standard library, not sandboxed.",
}
"""What is true of each engine."""


class House(Protocol):
    """What the face needs of the house behind it."""

    async def run(self, command: str, *, progress: TellProgress | None = None) -> Reply:
        """Answer a command, telling of progress meanwhile."""
        ...

    def tool_names(self) -> list[str]:
        """Name every tool."""
        ...

    def tool_help(self, name: str) -> str:
        """Explain one tool."""
        ...

    def stored_text(self, handle: str) -> str:
        """Return the text of a stored result."""
        ...


def build_server(house: House, version: str, engine: str = "portable") -> FastMCP:
    """Return the MCP server whose one tool answers from *house*, which runs programs in *engine*."""
    server = FastMCP("onetool", INSTRUCTIONS, version=version, mask_error_details=True, on_duplicate="error")

    @server.tool(
        description=DESCRIPTION + SANDBOX[engine],
        annotations=ToolAnnotations(
            title="Run Python", read_only_hint=False, destructive_hint=True, open_world_hint=True
        ),
        output_schema=None,
    )
    async def run(command: str, ctx: Context) -> ToolResult:  # pyright: ignore[reportUnusedFunction] - registered
        reply = await _with_progress(house, command, ctx)
        content: list[Any] = [TextContent(type="text", text=text) for text in reply.texts]
        return ToolResult(content=content, meta={"onetool": reply.meta}, is_error=reply.is_error)

    @server.resource("ot://tools", mime_type="application/json", description="The names of all tools")
    def tools() -> list[str]:  # pyright: ignore[reportUnusedFunction] - registered
        return house.tool_names()

    @server.resource("ot://tool/{name}", mime_type="text/markdown", description="Help on one tool")
    def tool(name: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return _or_error(lambda: house.tool_help(name))

    @server.resource("ot://result/{handle}", mime_type="text/plain", description="A stored result")
    def result(handle: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return _or_error(lambda: house.stored_text(handle))

    return server


def _or_error(read: Callable[[], str]) -> str:
    try:
        return read()
    except OneToolError as error:
        raise ResourceError(str(error)) from None


async def _with_progress(house: House, command: str, ctx: Context) -> Reply:
    """Return the reply, telling the client what tools tell, and at least every five seconds that it goes on."""
    if not _wants_progress(ctx):
        return await house.run(command)
    heartbeat = _Heartbeat(ctx)
    beating = asyncio.ensure_future(heartbeat.beat())
    try:
        return await house.run(command, progress=heartbeat.tell)
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating


def _wants_progress(ctx: Context) -> bool:
    request: Any = ctx.request_context
    meta: Any = request.meta if request else None
    return bool(meta) and meta.get("progressToken") is not None  # as on the wire


class _Heartbeat:
    """Sends progress: the latest news when there are some, a sign of life when there are none."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._news: Progress | None = None
        self._told = asyncio.Event()

    def tell(self, progress: Progress) -> None:
        """Take the latest news."""
        self._news = progress
        self._told.set()

    async def beat(self) -> None:
        """Send until cancelled; progress over MCP only ever grows, so it counts what was sent."""
        for count in itertools.count(1):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PROGRESS_SECONDS):
                    await self._told.wait()
            self._told.clear()
            news, self._news = self._news, None
            await self._ctx.report_progress(count, None, _words(news))
            await asyncio.sleep(NEWS_PAUSE_SECONDS)


def _words(news: Progress | None) -> str:
    if news is None:
        return "running"
    counted = f"{news.done}" + (f"/{news.total}" if news.total is not None else "") if news.done is not None else ""
    return " ".join(part for part in (counted, news.message) if part) or "running"
