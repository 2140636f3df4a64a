"""Measures what the server may spend, by the bounds of budgets.toml, and ends with 1 where one is exceeded.

    python benchmarks/budgets.py                          everything: about fifteen minutes on two quiet cores
    python benchmarks/budgets.py --only run_exact,start_to_first_reply
    python benchmarks/budgets.py --rounds 20              does it work?
    python benchmarks/budgets.py --earlier COMMIT|TREE    against another commit, or a work tree that has its .venv

All sides of a line take turns in one process, in an order that changes, so that what else the machine does meets them
alike. The earlier commit gets a work tree and an environment of its own, which are removed afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from benchmarks.process_costs import pss_bytes  # noqa: E402 - the path comes first
from benchmarks.proxies import Wire  # noqa: E402 - as above
from benchmarks.worker_call import PACK, BareEcho, Door, seconds_a_call  # noqa: E402 - as above

BUDGETS = HERE / "budgets.toml"
WARM = 30
WIDEST = 0.06
"""A wider interval around a bound decides nothing: measure more rounds, or on a quieter machine."""
BESIDE = 8
PACKS, TOOLS_A_PACK = 500, 20

Sample = Callable[[str], float]
"""What one side takes, once."""


@dataclass(frozen=True)
class Line:
    """What is measured, beside what, and the bounds."""

    name: str
    of: Mapping[str, float]
    rounds: int
    what: str = "run"
    program: str = "1+1"
    engine: str = "exact"


@dataclass(frozen=True)
class Found:
    """A ratio, and whether it is within its bound."""

    line: str
    of: str
    ratio: float
    low: float
    high: float
    bound: float
    rounds: int

    @property
    def reached(self) -> bool:
        """Whether even the upper end is within the bound."""
        return self.high <= self.bound

    @property
    def verdict(self) -> str:
        """What the table says."""
        if self.reached:
            return "yes" if isfinite(self.bound) else ""
        unsure = self.low <= self.bound and self.high - self.low > WIDEST
        return "no: the interval is wide, measure more rounds" if unsure else "no"


class Bed:
    """The servers that are compared, in homes of their own."""

    def __init__(self, root: Path, earlier: Path) -> None:
        self._root = root
        ours = [sys.executable, str(HERE / "our_server.py")]
        self._commands = {
            "now": ours,
            "earlier": [str(earlier / ".venv/bin/python"), str(earlier / "benchmarks/our_server.py")],
            "bare": [sys.executable, str(HERE / "bare_server.py")],
            "bare_uvloop": [sys.executable, str(HERE / "bare_server_uvloop.py")],
            "ten_tools": ours,
        }

    def start(self, side: str, line: Line) -> Wire:
        """Start the server of *side*, in the same home each time."""
        home = self._root / line.engine / side
        if not home.exists():
            pack = home / ".onetool" / "tools" / "bench" / "bench_tools.py"
            pack.parent.mkdir(parents=True)
            pack.write_text(PACK)
            (home / ".onetool" / "onetool.yaml").write_text(f"engines: {{use: {line.engine}}}\n")
            (home / "a.txt").write_text("x\n")
        many = [str(self._write_packs())] if side == "now" and "ten_tools" in line.of else []
        return Wire(self._commands[side] + many, home)

    def _write_packs(self) -> Path:
        """Return a directory of 10,000 tools."""
        directory = self._root / "many"
        if not directory.exists():
            directory.mkdir()
            for number in range(PACKS):
                functions = "".join(
                    f"\n\ndef tool_{tool}(*, query: str, limit: int = {tool}, exact: bool = False) -> list[str]:\n"
                    f'    """Find things of kind {number}.{tool}.\n\n    Args:\n        query: What to find.\n    """\n'
                    f"    return [query] * limit\n"
                    for tool in range(TOOLS_A_PACK)
                )
                text = f'"""Generated pack {number}."""\n\npack = "pack_{number}"\n{functions}'
                (directory / f"pack_{number}.py").write_text(text)
        return directory


def measure(line: Line, bed: Bed) -> dict[str, list[float]]:
    """Return what each side of *line* took, round by round."""
    sides = ["now", *line.of]
    with ExitStack() as stack:
        if line.what == "worker":
            return in_turns(open_workers(stack), sides, line.rounds)
        if line.what in ON_ITS_OWN:
            once = ON_ITS_OWN[line.what]
            return in_turns(lambda side: once(lambda: bed.start(side, line)), sides, line.rounds, warm=1)
        wires = {side: stack.enter_context(closing(bed.start(side, line))) for side in sides}
        for wire in wires.values():
            wire.call("run", command=line.program)  # which fails where a program does
        if line.what == "ping":
            return in_turns(lambda side: ping_beside(wires[side], line.program), sides, line.rounds, warm=2)
        return in_turns(lambda side: run_once(wires[side], line.program), sides, line.rounds)


def in_turns(sample: Sample, sides: Sequence[str], rounds: int, warm: int = WARM) -> dict[str, list[float]]:
    """Return *rounds* samples of each side, in an order that changes, without the first ones."""
    found: dict[str, list[float]] = {side: [] for side in sides}
    chance = random.Random(1)
    for _ in range(warm + rounds):
        for side in chance.sample(sides, len(sides)):
            found[side].append(sample(side))
    return {side: samples[warm:] for side, samples in found.items()}


def run_once(wire: Wire, program: str) -> float:
    """Return how long a run takes."""
    begun = time.perf_counter()
    wire.call("run", command=program)
    return time.perf_counter() - begun


def ping_beside(wire: Wire, program: str) -> float:
    """Return how long a ping takes in the middle, while runs of *program* work."""
    for _ in range(BESIDE):
        wire.leave("tools/call", {"name": "run", "arguments": {"command": program}})
    took: list[float] = []
    while wire.left:
        begun = time.perf_counter()
        wire.request("ping", {})
        took.append(time.perf_counter() - begun)
        time.sleep(0.002)  # pings are beside the work, they are not the work
    return statistics.median(took)


def start_once(start: Callable[[], Wire]) -> float:
    """Return how long it takes from the start of a server to its first reply to a run."""
    begun = time.perf_counter()
    with closing(start()) as wire:
        wire.call("run", command="1+1")
        return time.perf_counter() - begun


def weigh(start: Callable[[], Wire], size: Callable[[int], int]) -> float:
    """Return the memory of a server that has worked for a while."""
    with closing(start()) as wire:
        for _ in range(200):
            wire.call("run", command="1+1")
        return size(wire.pid)


ON_ITS_OWN: Mapping[str, Callable[[Callable[[], Wire]], float]] = {
    "start": start_once,
    "rss": lambda start: weigh(start, lambda pid: psutil.Process(pid).memory_info().rss),
    "pss": lambda start: weigh(start, lambda pid: pss_bytes([pid])),
}
"""What takes a server of its own each time."""


def open_workers(stack: ExitStack) -> Sample:
    """Return what times a call to a worker through the whole door, or to a bare process that answers lines."""
    runner = stack.enter_context(asyncio.Runner())
    door = Door(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    stack.callback(lambda: runner.run(door.pool.aclose()))
    echo = runner.run(BareEcho.start())
    stack.callback(lambda: runner.run(echo.aclose()))
    calls = {"now": door, "echo": echo}
    return lambda side: runner.run(seconds_a_call(calls[side], 100))


def compare(line: Line, took: Mapping[str, Sequence[float]]) -> list[Found]:
    """Return the median of the rounds' ratios, with its interval, for each side that *line* is compared with."""
    found: list[Found] = []
    for side, bound in line.of.items():
        ratios = [ours / theirs for ours, theirs in zip(took["now"], took[side], strict=True)]
        found.append(Found(line.name, side, statistics.median(ratios), *interval(ratios), bound, len(ratios)))
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 90 % interval of the median, by drawing values again and again."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(1000))
    return drawn[50], drawn[949]


def table(found: Sequence[Found]) -> str:
    """Return a table of what was found."""
    lines = ["| line | of | ratio | 90 % interval | bound | reached |", "|---|---|---|---|---|---|"]
    for row in found:
        between = f"{row.low:.2f} to {row.high:.2f}"
        bound = f"{row.bound:g}" if isfinite(row.bound) else ""
        lines.append(f"| {row.line} | {row.of} | {row.ratio:.2f} | {between} | {bound} | {row.verdict} |")
    return "\n".join(lines)


def as_json(row: Found) -> dict[str, Any]:
    """Return *row* with null where there is no bound: JSON has no infinity."""
    figures = {name: round(getattr(row, name), 3) for name in ("ratio", "low", "high")}
    return asdict(row) | figures | {"bound": row.bound if isfinite(row.bound) else None, "reached": row.reached}


@contextmanager
def checkout(commit: str) -> Generator[Path]:
    """Yield a work tree of *commit* that is ready to run, and remove it; or *commit*, if it is such a tree."""
    if Path(commit).is_dir():
        yield Path(commit).absolute()
        return
    environ = {**os.environ, "UV_PYTHON": os.path.realpath(sys.executable)}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "earlier"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), commit], check=True, cwd=HERE)
        try:
            subprocess.run([place / ".ci" / "setup"], check=True, cwd=place, env=environ)
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], check=True, cwd=HERE)


def read_lines(only: Sequence[str] = (), rounds: int | None = None) -> list[Line]:
    """Return the lines of budgets.toml, or some of them."""
    lines = [Line(name, **given) for name, given in tomllib.loads(BUDGETS.read_text())["ratios"].items()]
    if unknown := set(only) - {line.name for line in lines}:
        sys.exit(f"no such line: {', '.join(sorted(unknown))}; there are {', '.join(line.name for line in lines)}")
    chosen = [line for line in lines if not only or line.name in only]
    return [replace(line, rounds=rounds or line.rounds) for line in chosen]


def main() -> None:
    """Measure, print, and say by the exit code whether every bound is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="names of lines, with commas")
    parser.add_argument("--rounds", type=int, help="rounds of each line, instead of those in budgets.toml")
    parser.add_argument("--earlier", default=tomllib.loads(BUDGETS.read_text())["earlier"], metavar="COMMIT|TREE")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    lines = read_lines(asked.only, asked.rounds)
    found: list[Found] = []
    with ExitStack() as stack:
        earlier = HERE.parent
        if any("earlier" in line.of for line in lines):
            earlier = stack.enter_context(checkout(asked.earlier))
        # An installed package is compiled; so is what is measured, whatever the environment says.
        for tree in {HERE.parent, earlier}:
            for part in ("src", "packs", "benchmarks"):
                compileall.compile_dir(tree / part, quiet=2)
        bed = Bed(Path(stack.enter_context(tempfile.TemporaryDirectory())), earlier)
        for line in lines:
            print(f"{line.name}, {line.rounds} rounds", file=sys.stderr, flush=True)
            found += compare(line, measure(line, bed))
    print(json.dumps([as_json(row) for row in found], indent=1) if asked.json else table(found))
    sys.exit(not all(row.reached for row in found))


if __name__ == "__main__":
    main()
