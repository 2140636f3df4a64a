"""Reads a server's message, once it is known to hold no more than can be read in a moment."""

from __future__ import annotations

import re
import time
from typing import Any

import orjson
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.jsonrpc import jsonrpc_message_adapter

from ot.execution.message_parts import has_many_parts
from ot.execution.unread import Unread

MOST_PARTS = 150_000
"""Of one message: the default of limits.value_parts, which bounds a value once more."""
MOST_BYTES = 16 << 20
"""Of one message; a larger reply is stored unread."""
MOST_REQUEST_BYTES = 128 << 10
"""Of a request or a notification."""
MOST_ITEMS = 1000
"""Blocks of one reply: the protocol's library looks at each for long."""
MOST_META_BYTES = 32 << 10
QUICK_BYTES = 32 << 10
TOO_LARGE = -32000

_ID = rb'"id" {0,9}: {0,9}(\d{1,15}+|"[^"\\]{1,100}+")'
HEAD = re.compile(rb'\{ {0,9}(?:"jsonrpc" {0,9}: {0,9}"2.0" {0,9}, {0,9})?+' + _ID + rb" {0,9},")
TAIL = re.compile(_ID + rb' {0,9}(?:, {0,9}"jsonrpc" {0,9}: {0,9}"2.0" {0,9})?+\}\s{0,9}\Z')
RESULT = re.compile(rb'"result" {0,9}: {0,9}(?=\{)')
AROUND = 400


def read_message(line: bytes) -> JSONRPCMessage:
    """Return the message on *line*; a reply that is too large to be read has an error for what it is, and its bytes.

    Raises:
        ValueError: It is no message, or none that a server has reason to send.
    """
    if not line.lstrip()[:1] == b"{":
        raise ValueError("no object")
    if len(line) > MOST_BYTES or has_many_parts(line, MOST_PARTS):
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
        return _bounded(message, line)
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and len(line) > MOST_REQUEST_BYTES:
        raise ValueError(f"{len(line):,} bytes, more than {MOST_REQUEST_BYTES:,}")
    return message


def _bounded(message: JSONRPCResponse, line: bytes) -> JSONRPCMessage:
    result: dict[str, Any] = message.result
    if any(len(result.get(key) or ()) > MOST_ITEMS for key in ("content", "contents", "messages")):
        return _unread(line)
    if "_meta" in result and len(orjson.dumps(result["_meta"])) > MOST_META_BYTES:
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
