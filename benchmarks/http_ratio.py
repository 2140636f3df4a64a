"""Measures run("1+1") over HTTP beside a tool of bare FastMCP that does nothing, request by request in turns.

python benchmarks/http_ratio.py [--rounds 400] [--blocks 12] [--seconds 1.0] [--classic] [--json]

One connection: how many times as long a request takes. 32 connections: how many times as many requests are answered
in a second. Ratios of medians with 90 % intervals; the client is a plain socket that writes ready bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

HERE = Path(__file__).parent
MODERN, CLASSIC = "2026-07-28", "2025-11-25"
CONNECTIONS = 32
BARS = {"portable": (1.35, 0.55), "exact": (1.6, 0.4)}
"""The most that a request may take at one connection, and the least that 32 connections may get, as ratios."""
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


class Server:
    """One server process, its port, and the bytes of a request that it answers."""

    def __init__(self, name: str, command: Sequence[str], home: Path, era: str) -> None:
        """Start *command* in *home*."""
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, *command], cwd=home, env={**os.environ, "HOME": str(home)}, stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.port, token = self._where(command, home)
        self.request = request_bytes(era, token)

    def _where(self, command: Sequence[str], home: Path) -> tuple[int, str]:
        if "--http" not in command:
            return int(command[1]), "none"
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        return int(told["url"].split(":")[2].split("/")[0]), (home / ".onetool" / "http-token").read_text().strip()

    async def wait(self) -> None:
        """Return once it answers, and has answered often enough to be warm."""
        for _ in range(200):
            try:
                async with Connection(self) as connection:
                    answer = await connection.ask()
                    if b" 200 " in answer[:20] and b'"isError":false' in answer:
                        for _ in range(100):
                            await connection.ask()
                        return
            except OSError:
                pass
            await asyncio.sleep(0.1)
        raise SystemExit(f"{self.name} does not answer")

    def cpu_seconds(self) -> float:
        """Return the processor time of the server itself, without its children that live."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def request_bytes(era: str, token: str) -> bytes:
    """Return a whole request that runs 1+1."""
    params: dict[str, Any] = {"name": "run", "arguments": {"command": "1+1"}}
    extra = ""
    if era == MODERN:
        params["_meta"] = META
        extra = "mcp-method: tools/call\r\nmcp-name: run\r\n"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        f"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n{extra}"
        f"mcp-protocol-version: {era}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One connection; it has one request open at a time."""

    def __init__(self, server: Server) -> None:
        """Connect to *server* on entry."""
        self._server = server
        self._heard = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    async def __aenter__(self) -> Connection:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._server.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._transport is not None
        self._transport.close()

    async def ask(self) -> bytes:
        """Send the request and return the answer."""
        assert self._transport is not None
        self._heard.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(self._server.request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        """Take a part of the answer."""
        self._heard += data
        if self._answer is not None and not self._answer.done() and _is_whole(self._heard):
            self._answer.set_result(bytes(self._heard))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("closed"))


def _is_whole(heard: bytearray) -> bool:
    end = heard.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = LENGTH.search(heard, 0, end)
    return len(heard) >= end + 4 + int(length[1]) if length else heard.endswith(b"0\r\n\r\n")


async def one_connection(servers: Sequence[Server], rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each request, the servers asked in turns."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    connections = [await Connection(server).__aenter__() for server in servers]
    for number in range(rounds):
        for at in range(len(servers)):
            at = (at + number) % len(servers)
            started = time.perf_counter()
            await connections[at].ask()
            found[servers[at].name].append((time.perf_counter() - started) * 1000)
    for connection in connections:
        await connection.__aexit__()
    return found


async def many_connections(servers: Sequence[Server], blocks: int, seconds: float) -> dict[str, list[float]]:
    """Return the answers per second of each block, the servers in turns."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    for block, at in itertools.product(range(blocks), range(len(servers))):
        server = servers[(at + block) % len(servers)]
        found[server.name].append(await _throughput(server, seconds))
    return found


async def _throughput(server: Server, seconds: float) -> float:
    answered = 0
    started = time.perf_counter()

    async def client() -> None:
        nonlocal answered
        async with Connection(server) as connection:
            while time.perf_counter() < started + seconds:
                answer = await connection.ask()
                assert b" 200 " in answer[:20] and b'"isError":false' in answer, answer
                answered += 1

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return answered / (time.perf_counter() - started)


def ratio(base: Sequence[float], other: Sequence[float]) -> dict[str, Any]:
    """Return the ratio of medians with its 90 % bootstrap interval."""
    chance = random.Random(1)

    def drawn(values: Sequence[float]) -> float:
        return statistics.median(chance.choices(values, k=len(values)))

    boot = sorted(drawn(other) / drawn(base) for _ in range(1000))
    medians = statistics.median(other), statistics.median(base)
    return {"ratio": round(medians[0] / medians[1], 3), "ci90": [round(boot[50], 3), round(boot[950], 3)],
            "median": round(medians[0], 3), "base": round(medians[1], 3)}  # fmt: skip


async def measure(servers: Sequence[Server], asked: argparse.Namespace) -> dict[str, Any]:
    """Return all ratios to the first of *servers*."""
    for server in servers:
        await server.wait()
    one = await one_connection(servers, asked.rounds)
    cpu = {server.name: server.cpu_seconds() for server in servers}
    many = await many_connections(servers, asked.blocks, asked.seconds)
    base = servers[0].name
    found: dict[str, Any] = {}
    for server in servers[1:]:
        found[server.name] = {
            "ms at 1 connection": ratio(one[base], one[server.name]),
            f"per second at {CONNECTIONS}": ratio(many[base], many[server.name]),
        }
    found["server CPU ms per request, many"] = {
        server.name: round(
            (server.cpu_seconds() - cpu[server.name]) * 1000 / (sum(many[server.name]) * asked.seconds), 3
        )
        for server in servers
    }
    return found


def start(asked: argparse.Namespace, root: Path) -> list[Server]:
    """Start the floor and OneTool with each engine."""
    era = CLASSIC if asked.classic else MODERN
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bare = [str(HERE / "bare_http_server.py"), str(port), *(["json"] if asked.json_floor else [])]
    servers = [Server("bare", bare, root, era)]
    code = "import sys; from ot.entry import main; main()"
    for engine in asked.engines.split(","):
        home = root / engine
        (home / ".onetool").mkdir(parents=True)
        (home / ".onetool" / "onetool.yaml").write_text(f"engines: {{use: {engine}}}\n")
        servers.append(Server(engine, ["-c", code, "serve", "--http", "0", "--json"], home, era))
    return servers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--engines", default="portable,exact")
    parser.add_argument("--classic", action="store_true", help="ask as clients before 2026-07-28 do")
    parser.add_argument("--json-floor", action="store_true", help="let the floor answer as JSON only")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        servers = start(asked, Path(temporary))
        try:
            found = uvloop.run(measure(servers, asked))
        finally:
            for server in servers:
                server.end()
    if asked.json:
        print(json.dumps(found, indent=1))
        return
    for engine, figures in found.items():
        for name, figure in figures.items():
            print(f"{engine}: {name}: {shown(engine, name, figure) if engine in BARS else figure}")


def shown(engine: str, name: str, figure: dict[str, Any]) -> str:
    """Return a ratio with its interval, its bar, and the medians behind it."""
    bar = BARS[engine][0 if name.startswith("ms") else 1]
    low, high = figure["ci90"]
    return f"{figure['ratio']:.2f} ({low:.2f} to {high:.2f}), bar {bar} [{figure['median']} to {figure['base']}]"


if __name__ == "__main__":
    main()
