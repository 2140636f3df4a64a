"""Measures run("1+1") in each engine against bare FastMCP: request by request in turns, spaced and back to back.

python benchmarks/engines.py [--rounds 200] [--row 10] [--json]
python benchmarks/engines.py --bombs        how much longer small runs take beside programs that never stop
python benchmarks/engines.py --statistics   how much longer runs take with statistics than without
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

from proxies import Wire, timed  # noqa: E402 - the path comes first

from runtime.engines.forked.bombs import BOMBS  # noqa: E402 - the tests' own

BARS = {"exact": {"spaced": 1.8, "back to back": 2.5}, "portable": {"spaced": 1.3, "back to back": 1.3}}
PACES = {"spaced": 0.05, "back to back": 0.0}
"""The seconds between runs."""
RUN, CALL = "1+1", "demo.echo(text='x')"


def start(script: str, home: Path, engine: str = "", more: str = "") -> Wire:
    """Start *script*, with *engine* and *more* in the configuration of *home*."""
    settings = home / ".onetool"
    settings.mkdir(parents=True)
    if engine:
        (settings / "onetool.yaml").write_text(f"engines: {{use: {engine}}}\n{more}")
    return Wire([sys.executable, str(HERE / script)], home)


def run(server: Wire, command: str) -> float:
    """Return how long a run took."""
    return timed(lambda: server.call("run", command=command)) / 1000


def measure(servers: dict[str, Wire], command: str, rounds: int, space: float, row: int) -> dict[str, list[float]]:
    """Return the times of each server: in turns when spaced, in rows when back to back."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    in_a_row = 1 if space else row
    for turn in range(rounds // in_a_row):
        names = list(servers)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            for _ in range(in_a_row):
                time.sleep(space)
                times[name].append(run(servers[name], command))
    return times


def with_statistics(rounds: int, row: int) -> str:
    """Return what recording adds to ``run("1+1")``, as a table."""
    lines = ["| pace | with statistics to without | of best tenths |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as directory:
        servers = {
            name: start("our_server.py", Path(directory) / name, "portable", f"stats: {{enabled: {name}}}\n")
            for name in ("true", "false")
        }
        try:
            for server in servers.values():
                for _ in range(20):
                    run(server, RUN)
            for pace, space in PACES.items():
                times = measure(servers, RUN, rounds, space, row)
                ratio = statistics.median(times["true"]) / statistics.median(times["false"])
                best = _best_tenth(times["true"]) / _best_tenth(times["false"])
                lines.append(f"| {pace} | {ratio:.3f} | {best:.3f} |")
        finally:
            for server in servers.values():
                server.close()
    return "\n".join(lines) + "\n"


def bombs(rounds: int) -> str:
    """Return the p95 of small runs alone and beside each bomb, and beside all of them, as a table."""
    lines = ["| beside | p95 alone, ms | p95 beside, ms | times |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as directory:
        for name, programs in {
            **{name: [program] for name, program in BOMBS.items()},
            "all": [*BOMBS.values()],
        }.items():
            server = start("our_server.py", Path(directory) / name, "exact")
            try:
                _p95(server, 40)
                alone = _p95(server, rounds)
                for program in programs:
                    server.leave("tools/call", {"name": "run", "arguments": {"command": program}})
                beside = _p95(server, rounds)
            finally:
                server.close()
            lines.append(f"| {name} | {alone * 1000:.1f} | {beside * 1000:.1f} | {beside / alone:.2f} |")
    return "\n".join(lines) + "\n"


def _p95(server: Wire, rounds: int) -> float:
    times: list[float] = []
    for number in range(rounds):
        time.sleep(0.02)
        times.append(run(server, f"sum(range({number}))"))
    return statistics.quantiles(times, n=20)[-1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--row", type=int, default=10)
    parser.add_argument("--bombs", action="store_true")
    parser.add_argument("--statistics", action="store_true")
    options = parser.parse_args()
    if options.bombs:
        sys.stdout.write(bombs(options.rounds))
        return
    if options.statistics:
        sys.stdout.write(with_statistics(options.rounds, options.row))
        return
    with tempfile.TemporaryDirectory() as directory:
        homes = Path(directory)
        servers = {
            "bare": start("bare_server.py", homes / "bare"),
            "portable": start("our_server.py", homes / "portable", "portable"),
            "exact": start("our_server.py", homes / "exact", "exact"),
        }
        try:
            found = figures(servers, options.rounds, options.row)
        finally:
            for server in servers.values():
                server.close()
    sys.stdout.write(json.dumps(found) + "\n" if options.json else table(found))


def figures(servers: dict[str, Wire], rounds: int, row: int) -> list[dict[str, Any]]:
    """Return the ratio of medians to the bare server, for each engine, command and pace."""
    for server in servers.values():
        for _ in range(20):
            run(server, RUN)
    found: list[dict[str, Any]] = []
    for command, (pace, space) in itertools.product((RUN, CALL), PACES.items()):
        times = measure(servers, command, rounds, space, row)
        floor = statistics.median(times["bare"])
        for name in ("portable", "exact"):
            bar = BARS[name].get(pace) if command == RUN else None
            ratio = statistics.median(times[name]) / floor
            # On a busy machine the best tenth of both sides says more than the middle.
            best = _best_tenth(times[name]) / _best_tenth(times["bare"])
            p95 = statistics.quantiles(times[name], n=20)[-1] * 1000
            found_row = {"engine": name, "command": command, "pace": pace, "ratio": ratio, "best": best, "bar": bar}
            found.append(found_row | {"p95_ms": p95})
    return found


def _best_tenth(times: list[float]) -> float:
    return sorted(times)[len(times) // 10]


def table(found: list[dict[str, Any]]) -> str:
    """Return the figures as a table."""
    lines = [
        "| engine | program | pace | ratio of medians | of best tenths | p95, ms | bar |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        bar = row["bar"] or ""
        shown = (f"{row['ratio']:.2f}", f"{row['best']:.2f}", f"{row['p95_ms']:.1f}")
        cells = (row["engine"], f"`{row['command']}`", row["pace"], *shown, bar)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
