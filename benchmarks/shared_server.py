"""Measures the server that clients share: in turns with bare FastMCP and with a server of the client's own.

    python benchmarks/shared_server.py                     prints the tables of docs/reference/benchmarks.md
    python benchmarks/shared_server.py --quick             fewer rounds, to see that it works
    python benchmarks/shared_server.py --only start,npm    some parts: start, first, calls, command, memory, npm

Everything that is compared is measured in turns in one run, so that ratios hold on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from process_costs import pss_bytes  # noqa: E402 - the path comes first
from proxies import Wire, in_turns, ratio  # noqa: E402 - as above

from real_servers.catalogues import command_of, install  # noqa: E402 - as above
from real_servers.server_table import REAL_SERVERS  # noqa: E402 - as above

ONETOOL = str(Path(sys.executable).with_name("onetool"))
SIDES = {
    "bare": [sys.executable, str(ROOT / "benchmarks" / "bare_server.py")],
    "alone": [ONETOOL, "serve"],
    "shared": [ONETOOL, "serve", "--shared"],
}
NPM = {
    "memory": "read_graph()",
    "github": "search_repositories(query='x')",
    "slack": "slack_get_users()",
    "gitlab": "search_repositories(search='x')",
    "notion": "API_get_self()",
}
"""Servers that ask their client nothing, and a call to each; all but the first reach nobody, but run."""
ASKING = {"filesystem": "list_allowed_directories()", "everything": "echo(message='x')"}
"""Servers that ask for roots, so that each client has its own of them."""
CLIENTS = 10
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: str
    bar: str = ""


@contextmanager
def client(side: str, home: Path, cwd: Path | None = None) -> Generator[Wire]:
    """Start a client's server, and end it."""
    wire = Wire(SIDES[side], home, cwd)
    try:
        yield wire
    finally:
        wire.close()


def typed(home: Path, *words: str) -> str:
    """Type a command, and return what it prints."""
    environ = {**os.environ, "HOME": str(home)}
    return subprocess.run([ONETOOL, *words], env=environ, cwd=home, check=True, capture_output=True, text=True).stdout


def run_of(wire: Wire) -> Callable[[], str]:
    """Return what runs the smallest program."""
    return lambda: wire.call("run", command="1+1")


# ---------------------------------------------------------------- times


def start(home: Path, rounds: int) -> list[Figure]:
    """Measure how soon a client is greeted, and has its first answer, while the shared server runs."""
    took: dict[str, dict[str, list[float]]] = {"initialize": {}, "first run": {}}
    with client("shared", home):
        for number in range(rounds + 1):
            for side in [*SIDES][number % 3 :] + [*SIDES][: number % 3]:
                greeted, answered = _started(side, home)
                if number:  # the first of each reads from the disk
                    took["initialize"].setdefault(side, []).append(greeted)
                    took["first run"].setdefault(side, []).append(answered)
    return [
        Figure(f"spawn to {what}, to {other}", ratio(took[what], "shared", other), bar)
        for what, bars in (("initialize", ("0.08", "")), ("first run", ("0.1", "")))
        for other, bar in zip(("bare", "alone"), bars, strict=True)
    ]


def _started(side: str, home: Path) -> tuple[float, float]:
    """Return milliseconds from the start of a client to its greeting, and to the answer of its first run."""
    begun = time.perf_counter()
    with client(side, home) as wire:
        greeted = time.perf_counter()
        run_of(wire)()
        return (greeted - begun) * 1000, (time.perf_counter() - begun) * 1000


def first(home: Path, rounds: int) -> list[Figure]:
    """Measure how soon the first client of all is greeted, whose relay starts the shared server."""
    took: dict[str, list[float]] = {"alone": [], "shared": []}
    for number in range(rounds):
        for side in ("alone", "shared") if number % 2 else ("shared", "alone"):
            took[side].append(_started(side, home)[0])
            typed(home, "stop", "--now")
    return [Figure("no shared server yet: spawn to initialize, to alone", ratio(took, "shared", "alone"), "1.1")]


def calls(home: Path, rounds: int) -> list[Figure]:
    """Measure one run through the relay and without it."""
    with ExitStack() as stack:
        wires = {side: stack.enter_context(client(side, home)) for side in SIDES}
        sides = {side: run_of(wire) for side, wire in wires.items()}
        for run in sides.values():
            assert {run() for _ in range(20)} == {"2"}
        took = in_turns(sides, rounds)
    others = (("alone", "1.10"), ("bare", ""))
    return [Figure(f"run(1+1), to {other}", ratio(took, "shared", other), bar) for other, bar in others]


def command(home: Path, rounds: int) -> list[Figure]:
    """Measure a command that the shared server answers."""
    empty = [sys.executable, "-c", "pass"]
    with client("shared", home):
        sides: dict[str, Callable[[], Any]] = {
            "onetool run": lambda: typed(home, "run", "1+1"),
            "python": lambda: subprocess.run(empty, check=True, cwd=home),
        }
        for side in sides.values():
            side()
        took = in_turns(sides, rounds)
    return [Figure("onetool run '1+1', to python -c pass", ratio(took, "onetool run", "python"), "8")]


# ---------------------------------------------------------------- memory


def memory(home: Path, rounds: int) -> list[Figure]:
    """Measure what ten clients take together, beside one."""
    del rounds
    one, ten = (_memory(home, [home] * count) for count in (1, CLIENTS))
    return [
        Figure("PSS of one client, MB", f"{one / MEGABYTE:.0f}"),
        Figure(f"PSS of {CLIENTS} clients, MB", f"{ten / MEGABYTE:.0f}"),
        Figure(f"PSS of {CLIENTS} clients, to one", f"{ten / one:.2f}", "1.6"),
    ]


def _memory(home: Path, places: Iterable[Path], program: str = "1+1") -> int:
    """Return what clients in *places*, their relays and the shared server take, once each has run *program*."""
    with ExitStack() as stack:
        wires = [stack.enter_context(client("shared", home, place)) for place in places]
        for wire in wires:
            wire.call("run", command=program)
        (server,) = json.loads(typed(home, "ps", "--json"))["servers"]
        found = pss_bytes([server["pid"], *(wire.pid for wire in wires)])
    typed(home, "stop", "--now")
    return found


def npm(home: Path, rounds: int) -> list[Figure]:
    """Measure ten clients that use five real servers from npm, in one directory and in ten."""
    del rounds
    for name in NPM | ASKING:
        asyncio.run(install(REAL_SERVERS[name]))
    places = [home / f"place_{number}" for number in range(CLIENTS)]
    for place in places:
        place.mkdir()
    with_asking = ASKING | dict([*NPM.items()][: -len(ASKING)])
    return [
        _servers_memory("one directory", home, NPM, "workspace", [home] * CLIENTS, "600"),
        _servers_memory("ten directories, scope: shared", home, NPM, "shared", places, "600"),
        _servers_memory("two of which ask for roots, one directory", home, with_asking, "workspace", [home] * CLIENTS),
    ]


def _servers_memory(
    title: str, home: Path, calls: Mapping[str, str], scope: str, places: Iterable[Path], bar: str = ""
) -> Figure:
    """Return what clients in *places* take that make *calls* to servers of *scope*."""
    servers = {
        name: {"command": words[0], "args": words[1:], "env": dict(REAL_SERVERS[name].env), "scope": scope}
        for name in calls
        if (words := command_of(REAL_SERVERS[name], home))
    }
    (home / ".onetool").mkdir(exist_ok=True)
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps({"servers": servers, "policy": {"allow": ["*"]}}))
    program = "".join(f"try: {name}.{call}\nexcept Exception: pass\n" for name, call in calls.items()) + "'called'"
    used = _memory(home, places, program) / MEGABYTE
    return Figure(f"{CLIENTS} clients, five npm servers, {title}, MB", f"{used:.0f}", bar)


# ---------------------------------------------------------------- the table

PARTS = {"start": start, "first": first, "calls": calls, "command": command, "memory": memory, "npm": npm}
ROUNDS = {"start": (12, 2), "first": (8, 1), "calls": (1500, 30), "command": (40, 3), "memory": (1, 1), "npm": (1, 1)}
"""How often each is measured, and how often where it is only to be seen that it works."""


def table(figures: Iterable[Figure]) -> str:
    """Return a Markdown table."""
    rows = [f"| {one.name} | {one.value} | {one.bar} |" for one in figures]
    return "\n".join(["| figure | ratio of medians, 90 % interval | bar |", "|---|---|---|", *rows])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default=",".join(PARTS), help="the parts to measure, separated by commas")
    asked = parser.parse_args()
    os.environ.pop("CI", None)
    figures: list[Figure] = []
    for part in asked.only.split(","):
        with tempfile.TemporaryDirectory(prefix="ot", dir="/tmp", ignore_cleanup_errors=True) as directory:
            os.environ["XDG_RUNTIME_DIR"] = directory
            home = Path(directory) / "home"
            home.mkdir()
            try:
                figures += PARTS[part](home, ROUNDS[part][1 if asked.quick else 0])
            finally:
                typed(home, "stop", "--now")
        print(table(figures), flush=True)


if __name__ == "__main__":
    main()
