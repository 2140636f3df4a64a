"""Measures proxied MCP servers: calls beside FastMCP's proxy, many tools, gathered calls, starts among dead ones.

    python benchmarks/proxies.py [--calls 300] [--cold 8] [--only calls,nested,starts]

Everything that is compared is measured in turns in one run, over raw JSON-RPC, so that ratios hold on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

BACKEND = """
import asyncio, sys
from fastmcp import FastMCP
mcp = FastMCP("backend")

for number in range(int(sys.argv[1])):
    def more(text: str, count: int = 1, flag: bool = False) -> str:
        return text
    mcp.tool(more, name=f"more_{number}", description=f"Say {number}: " + "words that fill a description. " * 5)

@mcp.tool(annotations={"readOnlyHint": True})
async def echo(text: str) -> str:
    return text

@mcp.tool(annotations={"readOnlyHint": True})
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"

mcp.run(show_banner=False)
"""
FRONT = """
import sys
from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy
kind, backend, tools = sys.argv[1:]
front = FastMCP("front", transforms=[CodeMode()] if kind == "codemode" else [])
front.mount(create_proxy(StdioTransport(sys.executable, [backend, tools], keep_alive=True)), namespace="demo")
front.run(show_banner=False)
"""
FEW, MANY = 10, 500
TEN_CALLS = "for n in range(10):\n    said = demo.echo(text='x')\nsaid"
TEN_CALLS_OF_CODEMODE = """
for n in range(10):
    said = await call_tool('demo_echo', {'text': 'x'})
return said
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
BARS = {"call": 1.2, "nested": 1.1, "gather": 0.8, "start": 1.15}


class Wire:
    """A server process and the requests to it, one at a time."""

    def __init__(self, command: list[str], home: Path, cwd: Path | None = None) -> None:
        self._numbers = itertools.count(1)
        environ = {**os.environ, "HOME": str(home)}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=cwd or home, env=environ
        )
        self.pid = self._process.pid
        self.left = set[int]()
        self.greeting = self.request("initialize", HELLO)
        self._write({"method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout
        number = self._post(method, params)
        for line in self._process.stdout:
            reply = json.loads(line)
            if reply.get("id") == number:
                return reply["result"]
            self.left.discard(reply.get("id"))
        raise RuntimeError("the server is gone")

    def leave(self, method: str, params: dict[str, Any]) -> None:
        """Ask, and wait for no reply; until one came among those to other requests, the number is in ``left``."""
        self.left.add(self._post(method, params))

    def _post(self, method: str, params: dict[str, Any]) -> int:
        number = next(self._numbers)
        self._write({"id": number, "method": method, "params": params})
        return number

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


def in_turns(sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return how many milliseconds each side took, measured in turns whose order changes."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides)[number % len(sides) :] + list(sides)[: number % len(sides)]
        for name in names:
            took[name].append(timed(sides[name]))
    return took


def ratio(took: dict[str, list[float]], ours: str, theirs: str) -> str:
    """Return the ratio of medians with its 90 % interval, by drawing rounds again and again."""
    pairs = list(zip(took[ours], took[theirs], strict=True))
    drawn: list[float] = []
    for _ in range(1000):
        some = random.choices(pairs, k=len(pairs))
        drawn.append(statistics.median(a for a, _ in some) / statistics.median(b for _, b in some))
    drawn.sort()
    middle = statistics.median(took[ours]) / statistics.median(took[theirs])
    return f"{middle:.2f} ({drawn[50]:.2f} to {drawn[949]:.2f})"


def medians(took: dict[str, list[float]]) -> str:
    """Return the medians as text."""
    return ", ".join(f"{name} {statistics.median(found):.2f} ms" for name, found in took.items())


def server_of(backend: Path, tools: int) -> dict[str, Any]:
    """Return the settings of the backend with that many more tools."""
    return {"command": sys.executable, "args": [str(backend), str(tools)]}


def calls(directory: Path, backend: Path, rounds: int) -> None:
    """Measure one call through run() and through the mounted proxy, and ten gathered ones."""
    ours = onetool(home_with(directory / "calls", {"demo": server_of(backend, 0)}))
    theirs = Wire([sys.executable, str(directory / "front.py"), "plain", str(backend), "0"], directory)
    sides = {
        "onetool": lambda: ours.call("run", command="demo.echo(text='x')"),
        "mounted": lambda: theirs.call("demo_echo", text="x"),
    }
    for warm in sides.values():
        assert {warm() for _ in range(10)} == {"x"}
    took = in_turns(sides, rounds)
    gather = "import asyncio\nlen(await asyncio.gather(*[demo.nap(seconds=0.5) for _ in range(10)]))"
    gathered = sorted(timed(lambda: ours.call("run", command=gather)) / 1000 for _ in range(9))
    ours.close()
    theirs.close()
    row("a proxied call to FastMCP's mounted proxy", ratio(took, "onetool", "mounted"), BARS["call"], medians(took))
    spread = f"{gathered[4]:.2f} s ({gathered[0]:.2f} to {gathered[-1]:.2f})"
    row("ten gathered calls of 0.5 s", spread, f"{BARS['gather']} s")


def nested(directory: Path, backend: Path, rounds: int) -> None:
    """Measure ten calls in one program, with few tools and with many; FastMCP's CodeMode does the same beside."""
    front = str(directory / "front.py")
    ours = {n: onetool(home_with(directory / f"n{n}", {"demo": server_of(backend, n)})) for n in (FEW, MANY)}
    codemode = {n: Wire([sys.executable, front, "codemode", str(backend), str(n)], directory) for n in (FEW, MANY)}
    sides: dict[str, Callable[[], Any]] = {}
    for count in (FEW, MANY):
        sides[f"onetool {count}"] = partial(ours[count].call, "run", command=TEN_CALLS)
        sides[f"codemode {count}"] = partial(codemode[count].call, "execute", code=TEN_CALLS_OF_CODEMODE)
    for warm in sides.values():
        assert ["x" in warm() for _ in range(5)]
    # The first pair alone: a CodeMode with many tools computes for seconds between two of our calls.
    alone = in_turns({name: side for name, side in sides.items() if "onetool" in name}, rounds)
    took = in_turns(sides, max(rounds // 10, 3))
    for wire in (*ours.values(), *codemode.values()):
        wire.close()
    few, many = f"{FEW}", f"{MANY}"
    row(
        f"ten calls in a program, {many} tools to {few}", ratio(alone, f"onetool {many}", f"onetool {few}"),
        BARS["nested"], medians(alone),
    )  # fmt: skip
    row(
        f"the same in FastMCP's CodeMode, {many} tools to {few}",
        ratio(took, f"codemode {many}", f"codemode {few}"),
        "",
        medians(took),
    )
    row(f"OneTool to CodeMode, {few} tools", ratio(took, f"onetool {few}", f"codemode {few}"))
    row(f"OneTool to CodeMode, {many} tools", ratio(took, f"onetool {many}", f"codemode {many}"))


def starts(directory: Path, backend: Path, rounds: int) -> None:
    """Measure from spawn to the first reply, with no servers and with twenty of which five are bad."""
    python = sys.executable
    good = {f"good{n}": server_of(backend, n) for n in range(15)}
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

    def first_reply(home: Path) -> float:
        begun = time.perf_counter()
        wire = onetool(home)
        assert wire.call("run", command="1 + 1") == "2"
        took = (time.perf_counter() - begun) * 1000
        wire.close()
        return took

    took: dict[str, list[float]] = {name: [] for name in homes}
    for number in range(rounds):
        for name in sorted(homes, reverse=bool(number % 2)):
            took[name].append(first_reply(homes[name]))
    what = "spawn to first reply, 20 servers of which 5 are bad, to none"
    row(what, ratio(took, "twenty", "none"), BARS["start"], medians(took))


def row(figure: str, measured: str, bar: object = "", told: str = "") -> None:
    """Print a line of the table."""
    print(f"| {figure} | {measured} | {bar} | {told} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--cold", type=int, default=8)
    parser.add_argument("--only", default="calls,nested,starts")
    asked = parser.parse_args()
    parts = {
        "calls": partial(calls, rounds=asked.calls),
        "nested": partial(nested, rounds=asked.calls),
        "starts": partial(starts, rounds=asked.cold),
    }
    print("| figure | measured | bar | medians |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "front.py").write_text(FRONT)
        backend = directory / "backend.py"
        backend.write_text(BACKEND)
        for name in asked.only.split(","):
            parts[name](directory, backend)


if __name__ == "__main__":
    main()
