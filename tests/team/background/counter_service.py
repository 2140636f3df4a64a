"""A service whose every write counts: an MCP server in a process of its own that remembers each in a file.

Run as a program it is the server; ``CounterService`` starts it and reads the file.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

START_SECONDS = 30.0


@dataclass
class CounterService:
    """The server process, and what was written to it."""

    process: subprocess.Popen[bytes]
    file: Path
    port: int

    @classmethod
    def start(cls, directory: Path, *, slowest: float = 0.02) -> Self:
        """Start it; each call takes up to *slowest* seconds before and after its effect."""
        file, port = directory / "counted.jsonl", _free_port()
        file.touch()
        process = subprocess.Popen([sys.executable, __file__, str(file), str(port), str(slowest)])
        service = cls(process, file, port)
        until = time.monotonic() + START_SECONDS
        while not service._listens():
            assert process.poll() is None, "the counter ended"
            assert time.monotonic() < until, "the counter does not listen"
            time.sleep(0.02)
        return service

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def url(self) -> str:
        """Where MCP is spoken."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def counted(self) -> Counter[tuple[str, int]]:
        """Return how often each write, by run and call, has taken effect."""
        rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        return Counter((row["run"], row["call"]) for row in rows)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program(run: str, calls: int = 12) -> str:
    """Return a program of *calls* calls, of which two thirds write."""
    return f"""
for n in range({calls}):
    if n % 3 == 2:
        counter.look(run={run!r})
    else:
        counter.add(run={run!r}, call=n)
"{run} is through"
"""


def _serve(file: Path, port: int, slowest: float) -> None:
    import uvicorn
    from fastmcp import FastMCP
    from mcp.types import ToolAnnotations

    server = FastMCP("counter")
    writing = os.open(file, os.O_WRONLY | os.O_APPEND)
    random.seed(port)

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
    _serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
