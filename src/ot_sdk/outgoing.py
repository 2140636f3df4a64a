"""Outgoing: requests from this worker to the server, and who waits for their replies."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from ot_sdk import tagged, wire
from ot_sdk.call import Call, current_call
from ot_sdk.errors import OutsideWorker, ToolCallFailed
from ot_sdk.line import Line

Settle = Callable[[wire.Message], None]

WITHOUT_CALL = 60.0
"""Seconds that a request waits when it belongs to no call; otherwise it waits as long as its call may take."""
GRACE = 1.0
"""Seconds by which the server's own word about a deadline may come later."""


class Outgoing:
    """Calls tools through the server."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._numbers = itertools.count(1)
        self._waiting: dict[str, tuple[Call | None, Settle]] = {}

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; blocks this thread."""
        arrived = threading.Event()
        replies: list[wire.Message] = []

        def settle(reply: wire.Message) -> None:
            replies.append(reply)
            arrived.set()

        id = self._ask(name, arguments, settle)
        try:
            if not arrived.wait(_patience()):
                raise _no_reply(name)
        finally:
            self._waiting.pop(id, None)
        return _value_of(replies[0])

    async def acall(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; the event loop goes on meanwhile."""
        import asyncio  # noqa: PLC0415 - costs half of a worker's start; whoever awaits has loaded it

        loop = asyncio.get_running_loop()
        reply: asyncio.Future[wire.Message] = loop.create_future()

        def settle(message: wire.Message) -> None:
            loop.call_soon_threadsafe(lambda: reply.done() or reply.set_result(message))

        id = self._ask(name, arguments, settle)
        try:
            return _value_of(await asyncio.wait_for(reply, _patience()))
        except asyncio.TimeoutError:  # noqa: UP041 - another class than TimeoutError before Python 3.11
            raise _no_reply(name) from None
        finally:
            self._waiting.pop(id, None)

    def settle(self, reply: wire.Message) -> None:
        """Hand a reply to whoever waits for it; others are forgotten."""
        _, settle = self._waiting.pop(str(reply.get("id")), (None, None))
        if settle is not None:
            with suppress(RuntimeError):  # the event loop that waited is closed
                settle(reply)

    def abandon(self, call: Call) -> None:
        """Fail what *call* waits for: its thread must wake up to be interrupted."""
        for id, (owner, _) in list(self._waiting.items()):
            if owner is call:
                self.settle(wire.error(id, wire.CANCELLED, "the call was cancelled", kind="Cancelled"))

    def _ask(self, name: str, arguments: Mapping[str, Any], settle: Settle) -> str:
        if not self._line.open:
            raise OutsideWorker("call_tool()")
        call = current_call.get()
        id = f"w{next(self._numbers)}"
        params = {"tool": name, "arguments": tagged.encode(dict(arguments)), "call": call.id if call else None}
        self._waiting[id] = (call, settle)
        try:
            send_from(call, self._line, wire.request(id, "call_tool", params))
        except BaseException:  # too large, or cancelled meanwhile
            self._waiting.pop(id, None)
            raise
        return id


def send_from(call: Call | None, line: Line, message: wire.Message) -> None:
    """Send *message* for code of a pack, which may be interrupted before and after, but not within."""
    if call is None:
        line.send(message)
        return
    with call.interrupts.shield():
        line.send(message)


def _patience() -> float:
    call = current_call.get()
    return (max(call.seconds_left, 0) if call else WITHOUT_CALL) + GRACE


def _value_of(reply: wire.Message) -> Any:
    result = reply.get("result")
    if isinstance(result, dict):
        return tagged.decode(cast("dict[str, Any]", result).get("value"))
    error: Any = reply.get("error")
    if not isinstance(error, dict):
        raise ToolCallFailed("ProtocolError", "the server's reply holds neither a value nor an error")
    found = cast("dict[str, Any]", error)
    data: Any = found.get("data")
    kind = cast("dict[str, Any]", data).get("kind") if isinstance(data, dict) else ""
    raise ToolCallFailed(str(kind or "ToolFailed"), str(found.get("message", "")))


def _no_reply(name: str) -> ToolCallFailed:
    return ToolCallFailed("ToolTimeout", f"{name} did not answer in time")
