"""An MCP server that counts: each write is a line in a file before it is answered. It prints where it listens."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import sys
from pathlib import Path

import uvicorn
from fastmcp import FastMCP
from mcp.types import ToolAnnotations


def serve(file: Path, gate: Path, slowest: float) -> None:
    """Serve on a free port; each call takes up to *slowest* seconds before and after its effect.

    The *gate* is open once there is such a file.
    """
    server = FastMCP("counter")
    writing = os.open(file, os.O_WRONLY | os.O_APPEND)

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
    async def add(run: str, call: int) -> int:
        """Count one write."""
        await asyncio.sleep(random.uniform(0, slowest))
        os.write(writing, json.dumps({"run": run, "call": call}).encode() + b"\n")
        await asyncio.sleep(random.uniform(0, slowest))
        return call

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def look(run: str) -> str:
        """Change nothing."""
        await asyncio.sleep(random.uniform(0, slowest))
        return run

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def hold() -> str:
        """Return once the gate is open."""
        while not gate.exists():  # noqa: ASYNC110, ASYNC240 - opened by another process
            await asyncio.sleep(0.01)
        return "open"

    app = server.http_app(stateless_http=True, json_response=True)
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)  # noqa: T201 - that is how it tells
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
