"""Measures proxied MCP servers: a call beside FastMCP's mounted proxy, gathered calls, and starts among dead servers.

    python benchmarks/proxies.py [--calls 300] [--cold 8]

Everything that is compared is measured in turns in one run, over raw JSON-RPC, so that ratios hold on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BACKEND = """
import asyncio
from fastmcp import FastMCP
mcp = FastMCP("backend")

@mcp.tool(annotations={"readOnlyHint": True})
async def echo(text: str) -> str:
    return text

@mcp.tool(annotations={"readOnlyHint": True})
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"

mcp.run(show_banner=False)
"""
MOUNTED = """
import sys
from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
front = FastMCP("front")
front.mount(create_proxy(StdioTransport(sys.executable, [sys.argv[1]], keep_alive=True)), namespace="demo")
front.run(show_banner=False)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
BARS = {"call": 1.2, "gather": 0.8, "start": 1.15}


class Wire:
    """A server process and the requests to it, one at a time."""

    def __init__(self, command: list[str], home: Path) -> None:
        self._numbers = itertools.count(1)
        environ = {**os.environ, "HOME": str(home)}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=home, env=environ
        )
        self.request("initialize", HELLO)
        self._write({"method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout
        number = next(self._numbers)
        self._write({"id": number, "method": method, "params": params})
        for line in self._process.stdout:
            reply = json.loads(line)
            if reply.get("id") == number:
                return reply["result"]
        raise RuntimeError("the server is gone")

    def call(self, tool: str, **arguments: Any) -> str:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        if result.get("isError"):
            raise RuntimeError(text)
        return text

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(20)


def home_with(directory: Path, servers: dict[str, Any]) -> Path:
    """Return a home whose OneTool has these servers."""
    (directory / ".onetool").mkdir(parents=True)
    (directory / ".onetool" / "onetool.yaml").write_text(
        json.dumps({"servers": servers, "policy": {"allow": ["demo.*"]}})
    )
    return directory


def onetool(home: Path) -> Wire:
    """Start OneTool."""
    return Wire([str(Path(sys.executable).with_name("onetool")), "serve"], home)


def timed(work: Any) -> float:
    """Return how many milliseconds *work* takes."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def calls(directory: Path, backend: Path, rounds: int) -> dict[str, float]:
    """Return the medians of a call through run() and through the mounted proxy."""
    mounted = directory / "mounted.py"
    mounted.write_text(MOUNTED)
    ours = onetool(home_with(directory / "calls", {"demo": {"command": sys.executable, "args": [str(backend)]}}))
    theirs = Wire([sys.executable, str(mounted), str(backend)], directory)
    sides = {
        "onetool": lambda: ours.call("run", command="demo.echo(text='x')"),
        "mounted": lambda: theirs.call("demo_echo", text="x"),
    }
    for warm in sides.values():
        for _ in range(5):
            assert warm() == "x"
    took: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sorted(sides, reverse=bool(number % 2)):
            took[name].append(timed(sides[name]))
    gather = "import asyncio\nlen(await asyncio.gather(*[demo.nap(seconds=0.5) for _ in range(10)]))"
    gathered = min(timed(lambda: ours.call("run", command=gather)) for _ in range(3))
    ours.close()
    theirs.close()
    medians = {name: statistics.median(found) for name, found in took.items()}
    return {**medians, "ratio": medians["onetool"] / medians["mounted"], "gather": gathered / 1000}


def starts(directory: Path, backend: Path, rounds: int) -> dict[str, float]:
    """Return the medians from spawn to the first reply, with no servers and with twenty of which five are bad."""
    python = sys.executable
    good = {f"good{n}": {"command": python, "args": [str(backend), str(n)]} for n in range(15)}
    bad = {
        "hangs": {"command": "sleep", "args": ["600"]},
        "hangs_too": {"command": "sleep", "args": ["601"]},
        "crashes": {"command": python, "args": ["-c", "raise SystemExit(1)"]},
        "junk": {"command": python, "args": ["-c", "print('junk' * 100); import time; time.sleep(600)"]},
        "missing": {"command": "no-such-program"},
    }
    homes = {
        "none": home_with(directory / "none", {}),
        "twenty": home_with(directory / "twenty", good | bad),
    }
    took: dict[str, list[float]] = {name: [] for name in homes}
    for number in range(rounds):
        for name in sorted(homes, reverse=bool(number % 2)):
            begun = time.perf_counter()
            wire = onetool(homes[name])
            assert wire.call("run", command="1 + 1") == "2"
            took[name].append((time.perf_counter() - begun) * 1000)
            wire.close()
    medians = {name: statistics.median(found) for name, found in took.items()}
    return {**medians, "ratio": medians["twenty"] / medians["none"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--cold", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        backend = directory / "backend.py"
        backend.write_text(BACKEND)
        called = calls(directory, backend, asked.calls)
        started = starts(directory, backend, asked.cold)
    print("| figure | measured | bar |\n|---|---|---|")
    print(f"| a proxied call to FastMCP's mounted proxy | {called['ratio']:.2f} | {BARS['call']} |")
    print(f"| ten gathered calls of 0.5 s | {called['gather']:.2f} s | {BARS['gather']} s |")
    print(
        f"| spawn to first reply, 20 servers of which 5 are bad, to none | {started['ratio']:.2f} | {BARS['start']} |"
    )
    rest = {key: round(value, 2) for key, value in {**called, **started}.items() if key not in ("ratio", "gather")}
    print(f"\nmedians in ms: {rest}")


if __name__ == "__main__":
    main()
