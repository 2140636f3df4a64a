"""Measures what a run costs, with all that may belong to it, and prints what numbers of users take.

python benchmarks/capacity.py [--rounds 9] [--repeat 20] [--engine exact] [--json] [--write]
python benchmarks/capacity.py --only-principals --rounds 5 --write    # what numbers of people cost
python benchmarks/capacity.py --kept [--calls 10 --seconds 30 ...]    # the sheet alone, from the kept measurements

CPU is that of all processes together: server, engine, workers, Redis, PostgreSQL, the other host. What belongs to a run
is the difference to a run without it, measured in turns. --write keeps the measurements in capacity.json and puts the
sheet into docs/explanation/scale.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.capacity_bed import Bed, bed
from benchmarks.capacity_principals import measure_principals
from benchmarks.capacity_sheet import STEPS, Assumptions, Costs, bottlenecks, step
from benchmarks.capacity_text import put_into, sheet

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "capacity.json"
PAGE = ROOT / "docs" / "explanation" / "scale.md"
CALLS = 20
"""Calls of a program whose calls are measured."""
TEXT = "'x' * 99 + chr(10)"
IN_FLIGHT = 8
HOLD_SECONDS = 1.5
BURN_SECONDS = 0.2
IN_BACKGROUND = "ot.background(command='1 + 1')['id']"
WARM_RUNS = 5
DRAWS = 1000
MANY = 200
WRITE_SECONDS = 2.0
"""After so long statistics and the ends of calls are written."""

PROGRAMS: Mapping[str, tuple[str, int]] = {
    "nested call": (f"for _ in range({CALLS}):\n    file.read(path='small.txt')\n1", CALLS),
    "worker call": (f"for _ in range({CALLS}):\n    near.echo(text='x')\n1", CALLS),
    "recorded call": (f"for n in range({CALLS}):\n    near.note(text=str(n))\n1", CALLS),
    "remote call": (f"for _ in range({CALLS}):\n    far.echo(text='x')\n1", CALLS),
    "stored result": (f"({TEXT}) * 2048", 1),
}
"""What is measured beside a plain run: a program, and how many of it that holds."""


def figure(values: Sequence[float]) -> dict[str, float]:
    """Return the median of *values* and the interval that holds 90 % of medians drawn from them."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    found = statistics.median(values), drawn[DRAWS // 20], drawn[-DRAWS // 20]
    return dict(zip(("median", "low", "high"), (round(value, 4) for value in found), strict=True))


# ---------------------------------------------------------------- processor time


def cpu_of(place: Bed, work: Callable[[], object], times: int, *names: str) -> float:
    """Return the CPU milliseconds that *work* takes, of the processes named."""
    before = place.cpu_ms(*names)
    for _ in range(times):
        work()
    return (place.cpu_ms(*names) - before) / times


def measure_cpu(place: Bed, rounds: int, runs: int) -> dict[str, dict[str, float]]:
    """Return what a run and each of its parts take, each round all of them in turns."""
    found: dict[str, list[float]] = {}

    def take(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for _ in range(rounds):
        plain = cpu_of(place, lambda: place.run("1 + 1"), 2 * runs)
        take("run, CPU ms", plain)
        take("run, CPU ms of Redis", cpu_of(place, lambda: place.run("1 + 1"), runs, "redis"))
        for name, (program, parts) in PROGRAMS.items():
            whole = cpu_of(place, lambda program=program: place.run(program), max(4, runs // 4))
            take(f"{name}, CPU ms", (whole - plain) / parts)
        there = cpu_of(place, lambda: place.run(PROGRAMS["recorded call"][0]), max(4, runs // 4), "postgres")
        take("ledger entry, CPU ms of PostgreSQL", there / CALLS)
        take("ledger entry, CPU ms", found["recorded call, CPU ms"][-1] - found["worker call, CPU ms"][-1])
    del found["recorded call, CPU ms"]
    return {name: figure(values) for name, values in found.items()}


def measure_background(place: Bed, rounds: int, runs: int) -> dict[str, dict[str, float]]:
    """Return what a run in the background takes, on top of the run that asks for it and the one that looks."""
    whole: list[float] = []
    database: list[float] = []
    for _ in range(WARM_RUNS):
        _ended(place, place.run(IN_BACKGROUND))
    held = place.ledger_bytes()
    for _ in range(rounds):
        plain = cpu_of(place, lambda: place.run("1 + 1"), runs)
        before, before_there = place.cpu_ms(), place.cpu_ms("postgres")
        asked = [place.run(IN_BACKGROUND) for _ in range(runs)]
        looks = sum(_ended(place, id) for id in asked)
        whole.append((place.cpu_ms() - before - (runs + looks) * plain) / runs)
        database.append((place.cpu_ms("postgres") - before_there) / runs)
    grown = [(place.ledger_bytes() - held) / rounds / runs]
    names = "background run, CPU ms", "background run, CPU ms of PostgreSQL", "background run, bytes"
    return dict(zip(names, map(figure, (whole, database, grown)), strict=True))


def _ended(place: Bed, id: str) -> int:
    """Wait for the end of a background run, and return how often it was looked at."""
    for looks in range(1, 30):
        if place.run(f"ot.run_state(id={id!r}, wait=20)['state']") == "done":
            return looks
    raise RuntimeError(f"the background run {id} does not end")


# ---------------------------------------------------------------- memory and bytes


def measure_memory(place: Bed, rounds: int) -> dict[str, dict[str, float]]:
    """Return the memory of the server at rest, and what each run in flight adds."""
    rest: list[float] = []
    added: list[float] = []
    for _ in range(rounds):
        rest.append(place.pss_mb("server"))
        held = [threading.Thread(target=_hold, args=(place.another(),)) for _ in range(IN_FLIGHT)]
        for thread in held:
            thread.start()
        time.sleep(HOLD_SECONDS / 2)  # by then all of them wait in their calls
        added.append((place.pss_mb("server") - rest[-1]) / IN_FLIGHT)
        for thread in held:
            thread.join()
    return {"server at rest, MB": figure(rest), "run in flight, MB": figure(added)}


def _hold(place: Bed) -> None:
    place.run(f"near.hold(seconds={HOLD_SECONDS})")


def measure_worker_memory(place: Bed) -> dict[str, dict[str, float]]:
    """Return what the first call of a pack adds: its worker."""
    before = place.pss_mb("server")
    place.run("near.echo(text='x')")
    return {"worker of a pack, MB": figure([place.pss_mb("server") - before])}


def measure_bytes(place: Bed) -> dict[str, dict[str, float]]:
    """Return what runs send, and what they leave on disk and in PostgreSQL."""
    network: list[float] = []
    stored: list[float] = []
    events, entries = _kept(place, "stats/stats.db"), place.ledger_bytes()
    for number in range(MANY):
        place.run(f"near.note(text='{number}')")
        network.append(place.sent + place.received)
    time.sleep(WRITE_SECONDS)
    figures = {
        "run, bytes sent and received": network,
        "run, bytes of statistics": [(_kept(place, "stats/stats.db") - events) / MANY],
        "ledger entry, bytes": [(place.ledger_bytes() - entries) / MANY],
    }
    results = place.home / ".onetool" / "tmp"
    for _ in range(5):
        before = _size(results)
        place.run(PROGRAMS["stored result"][0])
        stored.append(_size(results) - before)
    return {name: figure(values) for name, values in {**figures, "stored result, bytes": stored}.items()}


def _size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def _kept(place: Bed, name: str) -> int:
    """Return the size of a database without its free pages; nothing where there is none."""
    database, copy = place.home / ".onetool" / name, place.home / "copy.db"
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    size = copy.stat().st_size
    copy.unlink()
    return size


# ---------------------------------------------------------------- all of it


def check_counting(place: Bed) -> None:
    """Fail if the time of a program or of a worker is not counted whole."""
    program = f"import time\nt = time.process_time() + {BURN_SECONDS}\nwhile time.process_time() < t: pass\n1"
    for command in (program, f"near.burn(seconds={BURN_SECONDS})"):
        taken = cpu_of(place, lambda command=command: place.run(command), 3)
        if not BURN_SECONDS * 900 < taken < BURN_SECONDS * 1500:
            raise RuntimeError(f"{BURN_SECONDS * 1000:g} ms of CPU were counted as {taken:.1f} ms: {command}")


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured."""
    with bed(asked.engine) as place:
        place.run("from pathlib import Path\nPath('small.txt').write_text('small')")
        figures = measure_worker_memory(place)
        for program, _ in PROGRAMS.values():
            place.run(program)
        check_counting(place)
        figures = measure_cpu(place, asked.rounds, asked.repeat) | figures
        figures |= measure_background(place, asked.rounds, max(5, asked.repeat // 2))
        figures |= measure_memory(place, 3) | measure_bytes(place)
    about = {"engine": asked.engine, "rounds": asked.rounds, "runs": asked.repeat, "python": platform.python_version()}
    return {"about": about, "figures": figures, "principals": principals_of(asked)}


def principals_of(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what numbers of people cost."""
    numbers = [int(number) for number in asked.principals.split(",") if number]
    return measure_principals(numbers, asked.rounds, asked.engine)


def options() -> argparse.ArgumentParser:
    """Return the options: how to measure, and each assumption."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds, each of everything in turns")
    parser.add_argument("--repeat", type=int, default=20, help="runs of each kind in a round")
    parser.add_argument("--engine", default="exact", help="exact or portable")
    parser.add_argument("--principals", default="1,1000,5000", help="numbers of people that a server knows")
    parser.add_argument("--only-principals", action="store_true", help="measure these alone; the rest is kept")
    parser.add_argument("--kept", action="store_true", help="measure nothing: use what is kept in capacity.json")
    parser.add_argument("--json", action="store_true", help="print measurements and sheet as JSON")
    parser.add_argument("--write", action="store_true", help="keep the measurements, and put the sheet into the page")
    for one in fields(Assumptions):
        name = f"--{one.name.replace('_', '-')}"
        parser.add_argument(name, type=float, default=one.default, help=f"{one.metadata['about']} ({one.default:g})")
    return parser


def main() -> None:
    """Measure and print."""
    asked = options().parse_args()
    given = Assumptions(**{one.name: getattr(asked, one.name) for one in fields(Assumptions)})
    measured = json.loads(KEPT.read_text()) if asked.kept or asked.only_principals else measure(asked)
    if asked.only_principals:
        measured["principals"] = principals_of(asked)
    if asked.write:
        KEPT.write_text(json.dumps(measured, indent=1) + "\n")
        PAGE.write_text(put_into(PAGE.read_text(encoding="utf-8"), sheet(measured, Assumptions())), encoding="utf-8")
    if asked.json:
        costs = Costs.of(measured["figures"])
        steps = [asdict(step(users, costs, given)) for users in STEPS]
        first = [asdict(one) for one in bottlenecks(costs, given)]
        print(json.dumps({**measured, "assumptions": asdict(given), "steps": steps, "bottlenecks": first}))
    else:
        print(sheet(measured, given))


if __name__ == "__main__":
    main()
