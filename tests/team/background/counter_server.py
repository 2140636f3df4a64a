"""An MCP server that counts: each write is a line in a file before it is answered."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import uvicorn
from fastmcp import FastMCP
from mcp.types import ToolAnnotations


def serve(file: Path, port: int, slowest: float) -> None:
    """Serve on *port*; each call takes up to *slowest* seconds before and after its effect."""
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

    app = server.http_app(stateless_http=True, json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
