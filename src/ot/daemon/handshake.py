"""The first exchange on a connection: who the client is, and whether it is served here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ot.processes.peer import ClientRefused, ServerRetires
from ot.relay.header import CONTROL, LENGTH_BYTES, MAGIC, NOT_NOW, REFUSAL, WELCOME, Header
from ot.server.connection import ClientProcess

HEADER_SECONDS = 2.0
MAX_REASON = 300
PREFIX_BYTES = len(MAGIC) + LENGTH_BYTES
MAX_BYTES = 8 << 20
"""More than a process can be given as arguments and environment."""


class MalformedHeader(ValueError):
    """The bytes are not a header of this protocol."""


def body_bytes(prefix: bytes) -> int:
    """Return how many bytes follow the first ``PREFIX_BYTES``.

    Raises:
        MalformedHeader: It is another protocol, or longer than any client's.
    """
    length = int.from_bytes(prefix[len(MAGIC) :], "big")
    if not prefix.startswith(MAGIC) or length > MAX_BYTES:
        raise MalformedHeader("not a header of this version")
    return length


def read_body(body: bytes) -> Header:
    """Return the header whose bytes after the prefix are *body*; raise MalformedHeader if a field is missing."""
    try:
        key, cwd, count, *rest = body.split(b"\0")
        number = int(count)
    except ValueError:
        raise MalformedHeader("fields are missing") from None
    if not 0 <= number <= len(rest):
        raise MalformedHeader("arguments are missing")
    pairs = (entry.partition(b"=") for entry in rest[number:])
    return Header(key, cwd, tuple(rest[:number]), {name: value for name, _, value in pairs})


async def read_header(reader: asyncio.StreamReader) -> Header:
    """Return the client's header, which comes at once or never.

    Raises:
        ClientRefused: It does not come in time, or is malformed.
    """
    try:
        async with asyncio.timeout(HEADER_SECONDS):
            length = body_bytes(await reader.readexactly(PREFIX_BYTES))
            return read_body(await reader.readexactly(length))
    except (TimeoutError, MalformedHeader, asyncio.IncompleteReadError, ConnectionError) as error:
        raise ClientRefused(f"the header is missing or malformed: {error}") from None


def is_control(header: Header) -> bool:
    """Return whether the connection asks about the server itself."""
    return header.argv[:1] == (CONTROL,)


def client_process(header: Header) -> ClientProcess:
    """Return the process that the header tells of; its first argument is the command."""
    environ = {os.fsdecode(name): os.fsdecode(value) for name, value in header.environ.items()}
    arguments = [os.fsdecode(argument) for argument in header.argv[1:]]
    return ClientProcess(Path(os.fsdecode(header.cwd)), arguments, environ)


def welcome(writer: asyncio.StreamWriter) -> None:
    """Tell the client that it is served here."""
    writer.write(WELCOME + b"\n")


def refuse(writer: asyncio.StreamWriter, reason: Exception) -> None:
    """Tell the client that it is not, and why, in one line."""
    text = " ".join(str(reason).split())[:MAX_REASON]
    mark = NOT_NOW if isinstance(reason, ServerRetires) else REFUSAL
    writer.write(mark + text.encode(errors="replace") + b"\n")
