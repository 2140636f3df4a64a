"""CounterService: a service whose every write counts, an MCP server in a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import warm_start

SERVER = Path(__file__).with_name("counter_server.py")
START_SECONDS = 30.0


@dataclass
class CounterService:
    """The server process, and what was written to it."""

    process: Any
    file: Path
    gate: Path
    port: int

    @classmethod
    def start(cls, directory: Path, *, slowest: float = 0.02) -> Self:
        """Start it; each call takes up to *slowest* seconds before and after its effect."""
        file, gate = directory / "counted.jsonl", directory / "open"
        file.touch()
        command = [sys.executable, str(SERVER), str(file), str(gate), str(slowest)]
        stderr = sys.__stderr__.fileno() if sys.__stderr__ else 2
        also = warm_start.TEAM
        process = warm_start.start(command, cwd=None, env=None, stderr=stderr, memory_bytes=None, also=also)
        assert select.select([process.stdout], [], [], START_SECONDS)[0], "the counter does not listen"
        told = process.stdout.readline()
        assert told, "the counter ended"
        return cls(process, file, gate, int(told))

    @property
    def url(self) -> str:
        """Where MCP is spoken."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def counted(self) -> Counter[tuple[str, int]]:
        """Return how often each write, by run and call, has taken effect."""
        rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        return Counter((row["run"], row["call"]) for row in rows)

    def open_gate(self) -> None:
        """Let calls of ``hold`` return."""
        self.gate.touch()

    def close(self) -> None:
        """End it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(START_SECONDS)
        self.process.stdin.close()
        self.process.stdout.close()


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
