"""Requests from another OneTool: how to recognise one and report progress to it; plugins answer its calls."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson
from fastmcp import Context, FastMCP

from ot.execution.caller import Caller
from ot.registry.announced_tool import IDEMPOTENCY_KEY, form_of, mapping_of
from ot.registry.tool import Tool
from ot.runtime.reply import Reply
from ot.runtime.run_events import Progress, RunEvent, TellEvent
from ot.server.classic_tools import Answer
from ot.server.front import Front
from ot.workspace import Workspace

KEY = re.compile(r"[!-~]{1,200}")
"""A call's key from elsewhere: it goes on to packs, into headers and logs."""
MOST_NEWS = 1000
"""Progress that waits to be sent; of more, the oldest is dropped."""


@dataclass(frozen=True)
class FormedReply(Reply):
    """The reply to another OneTool."""

    form: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


class PackOffer(Protocol):
    """Packs that are all a server offers, for programs on other hosts."""

    def attach(self, server: FastMCP) -> None:
        """Add their tools to *server*, and what goes with them."""
        ...

    async def carry_out(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        workspace: Workspace,
        *,
        caller: Caller,
        tell: TellEvent | None = None,
        key: str = "",
    ) -> FormedReply:
        """Return what a call of *tool* comes to, for another OneTool; a failure is a reply too."""
        ...


type OfferPacks = Callable[[Front, Answer], PackOffer]
"""Makes the offer from the packs of the workspace that is announced; the second answers calls of other clients."""


def wants_form(ctx: Context) -> bool:
    """Return whether whoever sends the request is a OneTool that reads the form of this one."""
    request: Any = ctx.request_context
    return form_of({"_meta": request.meta if request else None}) is not None


def key_of(ctx: Context) -> str:
    """Return the key by which whoever sends the request knows its call; nothing where it has none that is usable."""
    request: Any = ctx.request_context
    given = mapping_of(request.meta if request else None).get(IDEMPOTENCY_KEY)
    return given if isinstance(given, str) and KEY.fullmatch(given) else ""


class ProgressRelay:
    """Sends all that tools tell of their progress, in order, as the other OneTool reads it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._news: deque[Progress] = deque(maxlen=MOST_NEWS)
        self._told = asyncio.Event()
        self._ended = False

    def tell(self, event: RunEvent) -> None:
        """Take news of progress."""
        if isinstance(event, Progress):
            self._news.append(event)
            self._told.set()

    def end(self) -> None:
        """Let it end once all is sent."""
        self._ended = True
        self._told.set()

    async def send(self) -> None:
        """Send until the end; progress over MCP only ever grows, so it counts what was sent."""
        count = 0
        while self._news or not self._ended:
            await self._told.wait()
            self._told.clear()
            while self._news:
                news, count = self._news.popleft(), count + 1
                told = {"done": news.done, "total": news.total, "message": news.message}
                await self._ctx.report_progress(count, None, orjson.dumps(told, default=str).decode())


async def with_relay[T](ctx: Context, work: Callable[[TellEvent | None], Awaitable[T]]) -> T:
    """Return the result of *work*, after sending all progress of its tools."""
    relay = ProgressRelay(ctx)
    sending = asyncio.ensure_future(relay.send())
    try:
        came = await work(relay.tell)
        relay.end()
        await sending
        return came
    finally:
        sending.cancel()
