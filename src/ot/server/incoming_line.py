"""What one line of a client means: a message, or why it is not one; a long line is read beside the event loop."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import mcp_types as types
from pydantic import ValidationError

from ot.values.parts import has_many_parts

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
QUICK_BYTES = 1 << 16
"""A line up to this size is read at once: a thread would take longer."""
MAX_PARTS = 150_000
"""The default of limits.value_parts. The parser lets nobody else run until it is done, and takes as long as there are
parts: a text is one, whatever its size."""
EDGE = 300
_VERSION, _ID = rb'\s*"jsonrpc"\s*:\s*"2\.0"\s*', rb'\s*"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\]{0,200}")\s*'
ID_FIRST = re.compile(rb"\s*\{(?:" + _VERSION + rb",)?" + _ID + rb",")
ID_LAST = re.compile(rb",(?:" + _VERSION + rb",)?" + _ID + rb"(?:," + _VERSION + rb")?\}\s*\Z")
"""Only one brace ends it, so that it is not a member of something else."""


@dataclass(frozen=True, slots=True)
class NoMessage:
    """Why a line is not a message: what is answered, and under which id."""

    code: int
    reason: str
    request_id: Any = None


Incoming = types.JSONRPCMessage | NoMessage


async def read_line(line: bytes, *, alone: bool) -> Incoming:
    """Parse *line*; a long one of a client that is not *alone* must not hold up the others."""
    if alone or len(line) <= QUICK_BYTES:
        return read_message(line)
    return await anyio.to_thread.run_sync(_read_bounded, line)


def read_message(line: bytes) -> Incoming:
    """Return the message of *line*."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        return _what_is_wrong(line)
    if isinstance(message, types.JSONRPCNotification) and _has_id(line):
        # MCP does not allow such an id, so it was read as a notification, which nobody would ever answer.
        return NoMessage(INVALID_REQUEST, "an id is a text or a whole number")
    return message


def _read_bounded(line: bytes) -> Incoming:
    if has_many_parts(line, MAX_PARTS):
        reason = f"a message to a shared server has at most {MAX_PARTS:,} parts"
        return NoMessage(INVALID_REQUEST, reason, outer_id(line))
    return read_message(line)


def outer_id(line: bytes) -> str | int | None:
    """Return the id of a request that is not read as a whole, where it is the first or the last of its members."""
    found = ID_FIRST.match(line) or ID_LAST.search(line, max(0, len(line) - EDGE))
    return json.loads(found[1]) if found else None


def _what_is_wrong(line: bytes) -> NoMessage:
    """Return the JSON-RPC code and reason for a line that is not a message, and its id if it has a usable one."""
    try:
        found: Any = json.loads(line.decode())
    except (ValueError, RecursionError):
        return NoMessage(PARSE_ERROR, "the line is not JSON")
    request_id: Any = found.get("id") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
    if not isinstance(request_id, str | int) or isinstance(request_id, bool):
        request_id = None
    return NoMessage(INVALID_REQUEST, "the line is not a JSON-RPC 2.0 message", request_id)


def _has_id(line: bytes) -> bool:
    """Return whether a message that was read as a notification claims to be a request."""
    try:
        return b'"id"' in line and "id" in json.loads(line)
    except (ValueError, RecursionError):
        return True  # a number or a depth that no honest client sends
