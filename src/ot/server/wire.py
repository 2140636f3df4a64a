"""MCP in lines over a pair of streams: every line is answered, none is too large, and a late answer is dropped."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage

from ot.relay.tracking import ASKS, KEPT
from ot.server.idle_garbage import IdleGarbage
from ot.server.incoming_line import INVALID_REQUEST, NoMessage, read_line

if TYPE_CHECKING:
    from ot.background.held_runs import HeldRun

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 16 << 20
MAX_DROPPED_BYTES = 128 << 20
"""A message over the first size is dropped and refused; one that is still not over at this size ends the connection."""
CHUNK = 1 << 16
MAX_NAME = 100
BLANK_LINES = re.compile(rb"\n{2,}+")

SPREAD = 1 << 30
"""A sum with a small number still fits 32 bits, which is all that some clients read."""
CANCELLED = "notifications/cancelled"
TIMED_OUT = re.compile("time", re.IGNORECASE)
"""How clients say that it was a time limit of theirs that ended a call, and not their user."""
INTERNAL_ERROR = -32603

Incoming = SessionMessage | Exception


class QuestionIds:
    """Shifts the ids of questions to the client by a number of this connection's own.

    A client may outlive the server that asked it. Its late answer must not be taken for that to a question of the
    next server, whose count begins again at one.
    """

    def __init__(self) -> None:
        """Draw the number."""
        self._shift = secrets.randbelow(SPREAD)

    def shift_question(self, message: types.JSONRPCMessage) -> types.JSONRPCMessage:
        """Return *message* as the client is to see it: a question, or that one is no longer asked."""
        if isinstance(message, types.JSONRPCRequest):
            return message.model_copy(update={"id": self._shift_id(message.id, self._shift)})
        if isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED and message.params:
            shifted = self._shift_id(message.params.get("requestId"), self._shift)
            return message.model_copy(update={"params": {**message.params, "requestId": shifted}})
        return message

    def unshift_answer[T: types.JSONRPCResponse | types.JSONRPCError](self, message: T) -> T:
        """Return the client's *message* with the id that the server knows; no question has that of a late one."""
        return message.model_copy(update={"id": self._shift_id(message.id, -self._shift)})

    @staticmethod
    def _shift_id(id: Any, by: int) -> Any:
        number = coerce_request_id(id)
        return number + by if isinstance(number, int) else id


@asynccontextmanager
async def wire_streams(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter | int,
    *,
    alone: bool = True,
    kept: Callable[[], list[str]] | None = None,
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Incoming], Wire]]:
    """Yield the stream that an MCP server reads, carried over *reader*, and the wire itself, to which it writes.

    Whoever opened *reader* and *writer* closes them. A client that is not *alone* shares the process with others.
    A relay whose client is alone may ask what is *kept* for it.
    """
    to_server, incoming = anyio.create_memory_object_stream[Incoming](0)
    wire = Wire(reader, writer, to_server, alone=alone, kept=kept)
    with wire.garbage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.read)
            yield incoming, wire
            tasks.cancel_scope.cancel()


class Wire:
    """Reads lines into messages and writes messages as lines: to the protocol's library, a stream to write to."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter | int,
        to_server: MemoryObjectSendStream[Incoming],
        *,
        alone: bool = True,
        kept: Callable[[], list[str]] | None = None,
    ) -> None:
        """Carry messages between the streams and the server."""
        self.client = ""
        """The name that the client gave itself."""
        self.has_person = False
        """Whether somebody has answered a question that this client showed."""
        self._reader = reader
        self._writer = writer
        self._to_server = to_server
        self._alone = alone
        self._kept = kept if alone else None
        self._open: set[Any] = set()
        self._held: dict[Any, HeldRun] = {}
        """By the id of its request, each run of which a question waits for a person at a terminal, or did."""
        self._questions = QuestionIds()
        self._answered = asyncio.Event()
        """Set when an answer is written that leaves none open."""
        self._writing = asyncio.Lock()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.garbage = IdleGarbage(self._is_awaited)

    async def read(self) -> None:
        """Hand every message to the server until the input ends."""
        async with self._to_server:
            buffer, dropped = bytearray(), 0
            while chunk := await self._chunk():
                if len(chunk) == CHUNK:
                    # More input is already there: reading it would not wait, and no other task would get a turn.
                    await asyncio.sleep(0)
                if b"\n\n" in chunk:
                    chunk = BLANK_LINES.sub(b"\n", chunk)
                start = 0
                while (end := chunk.find(b"\n", start)) >= 0:
                    line = bytes(buffer) + chunk[start:end] if buffer else chunk[start:end]
                    start = end + 1
                    buffer.clear()
                    if dropped:
                        dropped = 0
                        await self._refuse(INVALID_REQUEST, f"a message has at most {MAX_MESSAGE_BYTES:,} bytes")
                    else:
                        await self._take(line)
                rest = chunk[start:]
                if dropped or len(buffer) + len(rest) > MAX_MESSAGE_BYTES:
                    dropped += len(buffer) + len(rest)
                    buffer.clear()
                    if dropped > MAX_DROPPED_BYTES:
                        await self._refuse(INVALID_REQUEST, "the message does not end; the connection is closed")
                        return
                else:
                    buffer += rest

    async def _chunk(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError:  # a client that was killed has gone as one that closed its end
            return b""

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        # A client that does not read its replies is not asked for more: what it sends waits in its own pipe.
        await self._flowing.wait()
        message = await read_line(line, alone=self._alone)
        if isinstance(message, NoMessage):
            await self._refuse(message.code, message.reason, message.request_id)
        elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            await self._to_server.send(SessionMessage(self._questions.unshift_answer(message)))
        elif await self._noted(message):
            await self._to_server.send(SessionMessage(message))

    async def _noted(self, message: Any) -> bool:
        """Keep track of the requests that are open, and refuse an id that already is."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == KEPT and self._kept:
                answer = {"jsonrpc": "2.0", "id": message.id, "result": {"kept": self._kept()}}
                await self._send(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
                return False
            self.client = self.client or _client_of(message.params or {})
            if message.id in self._open:
                await self._refuse(INVALID_REQUEST, "a request with this id is still being answered", message.id)
                return False
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered, so nothing else would free its id.
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int):
                self._open.discard(cancelled)
                if held := self._held.get(cancelled):
                    held.left = held.left or bool(TIMED_OUT.search(str((message.params or {}).get("reason"))))
                    return not held.left
        return True

    def find_request(self, id: str) -> Any:
        """Return the open request of *id* as the client wrote it.

        None: the client waits no more, or for two that have the same id as a text and as a number.
        """
        request, *others = [open for open in self._open if str(open) == id] or [None]
        return None if others else request

    async def tell_waiting(self, request: Any, tool: str) -> None:
        """Tell the relay of a shared server that *request* waits for leave to call *tool*; nothing: no longer."""
        if request is not None and not self._alone:
            params = {"requestId": request, "tool": tool}
            await self._send(json.dumps({"jsonrpc": "2.0", "method": ASKS, "params": params}).encode() + b"\n")

    def hold(self, request: Any, run: HeldRun) -> None:
        """Let *run* go on if its client gives up waiting for the answer to *request*."""
        self._held[request] = run
        end = run.cancel

        async def cancel() -> None:
            """End the call as its client would."""
            if self._held.pop(request, None):
                params = {"requestId": request}
                ending = types.JSONRPCNotification(jsonrpc="2.0", method=CANCELLED, params=params)
                await self._to_server.send(SessionMessage(ending))
            await end()

        run.cancel = cancel

    def release(self, request: Any) -> None:
        """Let the run of *request* end with its call again, where the client still waits for it."""
        if request in self._held and not self._held[request].left:
            del self._held[request]

    async def leave(self, request: Any, result: Mapping[str, Any]) -> None:
        """Answer *request* with *result* now; its run's own result is kept."""
        held = self._held[request]
        if held.left or request not in self._open:
            return
        held.left = True
        self._open.discard(request)
        answer = {"jsonrpc": "2.0", "id": request, "result": dict(result)}
        await self._send(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        if not self._open:
            self._answered.set()

    def _keep(self, message: types.JSONRPCResponse | types.JSONRPCError) -> bool:
        """Keep a result for which nobody waits any more; return whether it was one."""
        held = self._held.pop(message.id, None)
        if held is None or not held.left:
            return False
        if isinstance(message, types.JSONRPCResponse):
            held.end(message.result)
        else:
            held.end({"content": [{"type": "text", "text": message.error.message}], "isError": True})
        return True

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message of the server."""
        message = self._questions.shift_question(item.message)
        is_answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
        if is_answer:
            self._open.discard(message.id)
            if self._held and self._keep(message):
                return
        try:
            line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        except ValueError as error:  # one message that has no JSON ends neither the others nor the server
            logger.error("a message could not be written: %s", error)
            if is_answer:
                await self._refuse(INTERNAL_ERROR, "the answer could not be written as JSON", message.id)
        else:
            await self._send(line)
        if not self._open:
            self._answered.set()
        if is_answer:
            self.garbage.collect_soon()

    async def aclose(self) -> None:
        """Do nothing: whoever opened the writer closes it."""

    async def __aenter__(self) -> Self:
        """Be written to until the block ends."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Close nothing, as above."""

    def _is_awaited(self) -> bool:
        return bool(self._open) or self._writing.locked()

    async def all_answered(self, seconds: float) -> bool:
        """Return whether every request has its answer, within *seconds*."""
        self._answered.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open:
                    await self._answered.wait()
                    self._answered.clear()
        return not self._open

    async def _refuse(self, code: int, reason: str, request_id: Any = None) -> None:
        reply = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": reason}}
        await self._send(json.dumps(reply).encode() + b"\n")

    async def _send(self, line: bytes) -> None:
        async with self._writing:
            if isinstance(self._writer, int):
                await anyio.to_thread.run_sync(_write_all, self._writer, line)
                return
            if self._writer.is_closing():  # the client has gone; the end of input tells the server
                return
            self._writer.write(line)
            self._flowing.clear()
            try:
                with suppress(ConnectionError):  # as above
                    await self._writer.drain()
            finally:
                self._flowing.set()


def _client_of(params: dict[str, Any]) -> str:
    """Return the name in a handshake of the older protocol, or with any request of the newer one."""
    info: Any = params.get("clientInfo")
    meta: Any = params.get("_meta")
    if info is None and isinstance(meta, dict):
        info = meta.get(types.CLIENT_INFO_META_KEY)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
    name: Any = info.get("name") if isinstance(info, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above
    return name[:MAX_NAME] if isinstance(name, str) else ""


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
