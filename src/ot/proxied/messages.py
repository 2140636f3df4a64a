"""What a server writes, as the protocol's library wants it: bounded messages; whatever else comes is skipped."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import orjson
from anyio.abc import AsyncResource
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.jsonrpc import jsonrpc_message_adapter

from ot.processes.guarded_process import GuardedProcess
from ot.proxied.call_trace import current_trace
from ot.proxied.tool_lists import ToolLists
from ot.values.parts import Unread, has_many_parts
from ot_sdk.redaction import Redact, Redactor, redact_block, redact_value

logger = logging.getLogger(__name__)

LIST_CHANGED = "notifications/tools/list_changed"
TURN = 20
"""Lines that are read before others get their turn."""
MAX_PARTS = 150_000
"""Of one message: the default of limits.value_parts, which bounds a value once more."""
MAX_BYTES = 16 << 20
"""Of one message; a larger reply is stored unread."""
MAX_REQUEST_BYTES = 128 << 10
"""Of a request or a notification."""
MAX_ITEMS = 1000
"""Blocks of one reply: the protocol's library looks at each for long."""
MAX_META_BYTES = 32 << 10
BLOCKS = ("content", "contents", "messages")
"""Where results hold blocks, whose encoded bytes are left alone."""
QUICK_BYTES = 32 << 10
TOO_LARGE = -32000
_ID = rb'"id" {0,9}: {0,9}(\d{1,15}+|"[^"\\]{1,100}+")'
HEAD = re.compile(rb'\{ {0,9}(?:"jsonrpc" {0,9}: {0,9}"2.0" {0,9}, {0,9})?+' + _ID + rb" {0,9},")
TAIL = re.compile(_ID + rb' {0,9}(?:, {0,9}"jsonrpc" {0,9}: {0,9}"2.0" {0,9})?+\}\s{0,9}\Z')
RESULT = re.compile(rb'"result" {0,9}: {0,9}(?=\{)')
AROUND = 400
CHUNK_BYTES = 32 << 10
MAX_LINE_BYTES = 64 << 20
KEPT_LINES = 5
SHOWN_CHARACTERS = 200
MOST_SEARCHED = 64 << 10
WARNED_LINES = 3
"""Later ones are logged at debug only: a server that prints on every call would fill the log."""


class StrayOutput:
    """The last few lines that were skipped, cut and escaped, and how many there were."""

    def __init__(self, server: str, redact: Redact = str) -> None:
        """Keep those of *server*; *redact* takes its secrets out before anything is cut."""
        self._server = server
        self._redact = redact
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self.count = 0

    def add(self, line: bytes, why: str = "") -> None:
        """Take note of a line of standard output that was skipped."""
        self.count += 1
        # repr() escapes what a terminal or a reader could be misled by.
        text = self._redact(line[:MOST_SEARCHED].decode(errors="backslashreplace"))
        shown = repr(text[:SHOWN_CHARACTERS]) + (f" ({why})" if why else "")
        self._last.append(shown)
        level = logging.WARNING if self.count <= WARNED_LINES else logging.DEBUG
        logger.log(level, "the server %s wrote a line that is not JSON-RPC: %s", self._server, shown)

    def say(self, line: str) -> None:
        """Keep a line of standard error, where it may say what it likes."""
        if line.strip():
            self._said.append(self._redact(line.strip())[:SHOWN_CHARACTERS])

    @property
    def said(self) -> str:
        """The last few lines of standard error."""
        return "\n".join(self._said)

    @property
    def text(self) -> str:
        """What to say about it in an error or in health; nothing when all lines were messages."""
        if not self.count:
            return ""
        lines = "1 line" if self.count == 1 else f"{self.count:,} lines"
        return f"it wrote {lines} on standard output that are not JSON-RPC, such as {self._last[-1]}"


class Readable(Protocol):
    """Something that gives bytes until it ends."""

    async def read(self, n: int = -1, /) -> bytes:
        """Return some bytes; none at the end."""
        ...


class OutputLines:
    """Cuts a stream at its line ends; a line that is too long, or has no end, is stray output."""

    def __init__(self, stream: Readable, stray: StrayOutput, most: int = MAX_LINE_BYTES) -> None:
        """Read *stream*; no line of more than *most* bytes is held."""
        self._stream = stream
        self._stray = stray
        self._most = most
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._size = 0

    async def line(self) -> bytes | None:
        """Return the next line without its end, or None when there are no more."""
        while not self._lines:
            data = await self._stream.read(CHUNK_BYTES)
            if not data:
                self._end()
                return None
            self._feed(data)
        return self._lines.popleft()

    def _feed(self, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not end and not self._size:
                continue
            self._grow(end)
            self._finish()
        self._grow(rest)

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._parts.append(part)
        elif self._parts:  # too long: only its beginning is kept, for the log
            self._parts = [b"".join(self._parts)[:MOST_SEARCHED]]

    def _finish(self) -> None:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > self._most:
            self._stray.add(line, f"{size:,} bytes, more than {self._most:,}")
        elif line.strip():
            self._lines.append(line)

    def _end(self) -> None:
        line = b"".join(self._parts)
        self._parts, self._size = [], 0
        if line.strip():
            self._stray.add(line, "its end is missing")


class Allowance:
    """What a server may send of its own accord: so many messages a second, and no more."""

    def __init__(self, most: int = 100) -> None:
        """Allow *most* messages a second."""
        self._most = self._left = most
        self._since = 0.0

    def takes(self) -> bool:
        """Return whether one more is taken."""
        now = time.monotonic()
        if now - self._since >= 1:
            self._since, self._left = now, self._most
        self._left -= 1
        return self._left >= 0


def read_message(line: bytes) -> JSONRPCMessage:
    """Return the message on *line*; a reply that is too large to be read has an error for what it is, and its bytes.

    Raises:
        ValueError: It is not a message, or not one that a server has reason to send.
    """
    if not line.lstrip()[:1] == b"{":
        raise ValueError("no object")
    if len(line) > MAX_BYTES or has_many_parts(line, MAX_PARTS):
        return _unread(line)
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        found = HEAD.match(line)
        if not found or not RESULT.search(line, 0, AROUND):
            raise
        # Whoever waits for it need not wait until the time is up.
        return _error(found[1], "the reply is malformed, or nested too deeply")
    if len(line) <= QUICK_BYTES:
        return message
    if isinstance(message, JSONRPCResponse):
        return _limit_message(message, line)
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and len(line) > MAX_REQUEST_BYTES:
        raise ValueError(f"{len(line):,} bytes, more than {MAX_REQUEST_BYTES:,}")
    return message


def _limit_message(message: JSONRPCResponse, line: bytes) -> JSONRPCMessage:
    result: dict[str, Any] = message.result
    if any(len(result.get(key) or ()) > MAX_ITEMS for key in BLOCKS):
        return _unread(line)
    if "_meta" in result and len(orjson.dumps(result["_meta"])) > MAX_META_BYTES:
        del result["_meta"]
    return message


def _unread(line: bytes) -> JSONRPCError:
    found = HEAD.match(line) or TAIL.search(line, max(len(line) - AROUND, 0))
    start = RESULT.search(line, 0, AROUND)
    if not found or not start:
        raise ValueError(f"{len(line):,} bytes of too many parts")
    last = line.rfind(b"}", 0, found.start()) + 1 if found.start() > start.end() else line.rfind(b"}")
    return _error(found[1], "the reply is too large to be read", Unread(line[start.end() : last]))


def _error(id: bytes, message: str, data: Unread | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=orjson.loads(id), error=ErrorData(code=TOO_LARGE, message=message, data=data))


class MessageStream(AsyncResource):
    """What both streams share: a block in which they are open."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True


class MessageReader(MessageStream):
    """Gives the messages of a process, and skips what is malformed."""

    def __init__(
        self,
        lines: OutputLines,
        stray: StrayOutput,
        changed: Callable[[], None],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        """Read *lines*; *changed* hears of new lists of tools, *ended* of the end, before anyone who waits does."""
        self._lines = lines
        self._stray = stray
        self._changed = changed
        self._ended = ended
        self._allowance = Allowance()
        self._read = 0

    def __aiter__(self) -> MessageReader:
        return self

    async def __anext__(self) -> SessionMessage:
        while (line := await self._lines.line()) is not None:
            self._read += 1
            if self._read % TURN == 0:
                await anyio.lowlevel.checkpoint()  # lines that are there already are read without a pause
            message = await self._message(line)
            if message is not None:
                return message
        await self._ended()
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def _message(self, line: bytes) -> SessionMessage | None:
        try:
            long = len(line) > QUICK_BYTES
            message = await anyio.to_thread.run_sync(read_message, line) if long else read_message(line)
        except (ValueError, RecursionError):
            self._stray.add(line)
            return None
        if isinstance(message, JSONRPCNotification) and message.method == LIST_CHANGED:
            # Here it costs next to nothing, however many come; behind this line each is a task of its own.
            self._changed()
            return None
        if isinstance(message, JSONRPCNotification | JSONRPCRequest) and not self._allowance.takes():
            return None
        return SessionMessage(message)


class TakenMessages(MessageStream):
    """The messages of any connection as the rest of OneTool sees them: repaired, and without the server's secrets."""

    def __init__(self, messages: Any, lists: ToolLists, redactor: Callable[[], Redactor]) -> None:
        """Give those of *messages*; *redactor* is asked for each: a login may have got a new token."""
        self._messages = messages
        self._lists = lists
        self._redactor = redactor

    def __aiter__(self) -> TakenMessages:
        return self

    async def __anext__(self) -> Any:
        return await self._take(await anext(self._messages))

    async def receive(self) -> Any:
        return await self._take(await self._messages.receive())

    async def _take(self, item: Any) -> Any:
        if isinstance(item, SessionMessage):
            redactor = self._redactor()
            if not redactor.idle:
                await redact_message(item.message, redactor)
            self._lists.repair(item.message)
        return item

    async def aclose(self) -> None:
        await self._messages.aclose()


async def redact_message(message: JSONRPCMessage, redactor: Redactor) -> None:
    """Take the secrets out of what *message* says; all of it is searched, and walked through only where one is."""
    if isinstance(message, JSONRPCResponse):
        message.result = await _redact(message.result, redactor)
    elif not isinstance(message, JSONRPCError):
        message.params = await _redact(message.params, redactor) if message.params else message.params
    elif isinstance(message.error.data, Unread):
        message.error.data = Unread(await anyio.to_thread.run_sync(redactor.data, message.error.data.data))
    else:
        said = await _redact({"message": message.error.message, "data": message.error.data}, redactor)
        message.error.message, message.error.data = said["message"], said["data"]


async def _redact(said: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    try:
        written = orjson.dumps(said)
    except TypeError:  # a number or a text that JSON has room for and orjson has not
        written = b""
    if 0 < len(written) <= QUICK_BYTES and not redactor.finds(written):
        return said
    return await anyio.to_thread.run_sync(_redact_found, said, written, redactor)


def _redact_found(said: dict[str, Any], written: bytes, redactor: Redactor) -> dict[str, Any]:
    if written and not redactor.finds(written):
        return said
    lists = {key: cast("list[Any]", said[key]) for key in BLOCKS if isinstance(said.get(key), list)}
    blocks = {key: [_redact_block(part, key, redactor.text) for part in parts] for key, parts in lists.items()}
    return redact_value({key: value for key, value in said.items() if key not in blocks}, redactor.text) | blocks


def _redact_block(block: Any, key: str, redact: Redact) -> Any:
    """Return a content block, the contents of a resource or a prompt's message; encoded bytes are left alone."""
    if not isinstance(block, dict):
        return redact_value(block, redact)
    found = cast("dict[str, Any]", block)
    if key == "contents":
        return redact_block({"type": "resource", "resource": found}, redact)["resource"]
    if key == "messages":
        rest = redact_value({name: value for name, value in found.items() if name != "content"}, redact)
        return rest | {"content": _redact_block(found.get("content"), "content", redact)}
    return redact_block(found, redact)


class MessageWriter(MessageStream):
    """Writes messages to a process."""

    def __init__(self, process: GuardedProcess) -> None:
        """Write to *process*."""
        self.broken = False
        """Whether it turned out that nothing can be written any more."""
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        stdin: Any = self._process.stdin
        if self.closed or not self._process.running or stdin.is_closing():
            self.broken = True
            raise anyio.ClosedResourceError
        frame = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        if trace := current_trace.get():
            trace.sent = True
        stdin.write(frame + b"\n")
        try:
            await stdin.drain()
        except OSError:
            self.broken = True
            raise anyio.BrokenResourceError from None
