"""The first exchange on a connection: who the client is, and whether it is served here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ot.daemon.header_reading import PREFIX_BYTES, MalformedHeader, body_bytes, read_body
from ot.daemon.peer import ClientRefused, ServerRetires
from ot.relay.header import CONTROL, NOT_NOW, REFUSAL, WELCOME, Header
from ot.server.connection import ClientProcess

HEADER_SECONDS = 2.0
MAX_REASON = 300


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
