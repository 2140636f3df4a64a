"""The real ``mcp-guide`` as a process, and the official client of it in both eras."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

ERAS = {"modern": "auto", "handshake": "legacy"}
COMMAND = str(Path(sys.executable).parent / "mcp-guide")


@asynccontextmanager
async def guide_client(project: Path, home: Path, era: str, **variables: str) -> AsyncGenerator[Client]:
    """Yield a client of a server that works in *project*."""
    environment = {"HOME": str(home), **variables}
    server = StdioServerParameters(command=COMMAND, env=environment, cwd=project)
    async with Client(server, mode=ERAS[era], read_timeout_seconds=30) as client:  # pyright: ignore[reportArgumentType] - two of its values
        yield client


async def answer_of(client: Client, tool: str, arguments: Mapping[str, Any] | None) -> tuple[bool, dict[str, Any]]:
    """Return whether a call failed, and its result."""
    reply = await client.call_tool(tool, dict(arguments) if arguments is not None else None)
    (content,) = reply.content
    assert content.type == "text"
    return bool(reply.is_error), json.loads(content.text)
