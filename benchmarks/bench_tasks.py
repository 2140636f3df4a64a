"""Plays the tasks of tasks.yaml in four ways over four sets of real servers.

    python benchmarks/bench_tasks.py            prints the tables of docs/reference/bench.md
    python benchmarks/bench_tasks.py --write    puts them into the page

Servers that the tasks use are started; those that only make the list longer are stood in for by listed_server.py with
the lists that they gave. The solver is a script, `benchmarks/four_ways/scripted_solver.py`, and no model.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT)]

from benchmarks.four_ways.measure import Bench, open_bench  # noqa: E402 - as above
from benchmarks.four_ways.suite import BenchSuite, BenchTask, read_suite  # noqa: E402 - as above
from benchmarks.four_ways.ways import WAYS  # noqa: E402 - as above
from benchmarks.task_place import fill  # noqa: E402 - the path comes first

from ot.config.paths import Paths  # noqa: E402 - as above
from ot.workspace import Workspace  # noqa: E402 - as above
from real_servers.catalogues import command_of, environment_of, install, recorded_catalogues  # noqa: E402 - as above
from real_servers.server_table import REAL_SERVERS  # noqa: E402 - as above

PAGE = ROOT / "docs" / "reference" / "bench.md"
START, END = "<!-- bench -->\n", "<!-- end of bench -->\n"
SUITE = ROOT / "benchmarks" / "tasks.yaml"
USED = ("time", "memory", "filesystem", "git", "everything")
"""Servers that tasks call: all of them work without an account."""
TWICE = ("redis", "excel", "gitlab", "fetch")
"""Connected a second time, as for a second account, to come to 500 tools."""
MORE_ENV = {"memory": {"MEMORY_FILE_PATH": "{place}/memory.jsonl"}}
"""Its own choice is a file beside its code."""


@dataclass(frozen=True)
class ServerSet:
    """Servers that are started, and servers of which only the list is offered."""

    name: str
    used: tuple[str, ...]
    listed: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()


SETS = (
    ServerSet("time alone", ("time",)),
    ServerSet("time and memory", ("time", "memory")),
    ServerSet("files and git", ("filesystem", "git")),
    ServerSet("a hundred tools", USED, ("playwright", "github")),
    ServerSet("five hundred tools", USED, tuple(name for name in REAL_SERVERS if name not in USED), TWICE),
)


@dataclass(frozen=True)
class Played:
    """What the tasks came to over one set."""

    servers: ServerSet
    tools: int
    rows: Sequence[Mapping[str, Any]]

    def row(self, task: str, way: str) -> Mapping[str, Any]:
        """Return the figures of one task in one way."""
        return next(row for row in self.rows if (row["task"], row["way"]) == (task, way))

    @property
    def tasks(self) -> list[str]:
        """The tasks that these servers can solve."""
        return list(dict.fromkeys(row["task"] for row in self.rows))


# ---------------------------------------------------------------- playing


@asynccontextmanager
async def opened(servers: ServerSet) -> AsyncGenerator[tuple[Bench, BenchSuite]]:
    """Yield the bench of *servers* in a directory of its own, and the tasks that they can solve."""
    # Of the same length everywhere: the directory's name is in calls and in results.
    with tempfile.TemporaryDirectory(prefix="bench", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        place = Path(temporary)
        values = fill(place)
        home = place / ".onetool"
        home.mkdir()
        config = {"servers": await _settings(servers, place), "policy": {"allow": ["*"]}, "stats": {"enabled": False}}
        (home / "onetool.yaml").write_text(json.dumps(config))
        workspace = Workspace.alone(Paths.of(place, home))
        try:
            async with open_bench(workspace, values=values) as bench:
                assert not bench.left_out, bench.left_out
                yield bench, BenchSuite(tasks=_solvable(read_suite(SUITE).tasks, servers.used))
        finally:
            await workspace.aclose()


async def _settings(servers: ServerSet, place: Path) -> dict[str, Any]:
    for name in servers.used:
        await install(REAL_SERVERS[name])
    settings = {name: _real(name, place) for name in servers.used}
    for name, tools in (await recorded_catalogues(servers.listed)).items():
        file = place / f"{name}.json"
        file.write_text(json.dumps(tools))
        listing = {"command": sys.executable, "args": ["-IS", str(ROOT / "benchmarks/listed_server.py"), str(file)]}
        settings[name] = listing
        if name in servers.twice:
            settings[f"{name}_2"] = listing
    return settings


def _real(name: str, place: Path) -> dict[str, Any]:
    server = REAL_SERVERS[name]
    program, *args = command_of(server, place)
    more = {key: value.format(place=place) for key, value in MORE_ENV.get(name, {}).items()}
    environment = environment_of(server, place) | more
    return {"command": program, "args": args, "env": environment, "cwd": str(place), "start_seconds": 60}


def _solvable(tasks: Iterable[BenchTask], servers: Sequence[str]) -> tuple[BenchTask, ...]:
    return tuple(task for task in tasks if {tool.partition(".")[0] for tool in task.tools} <= set(servers))


async def play(servers: ServerSet, *, timed: bool = False, only: Sequence[str] = ()) -> Played:
    """Return what the tasks, or *only* some, come to over *servers*; *timed* plays them again, warm, for the times."""
    async with opened(servers) as (bench, all_tasks):
        suite = BenchSuite(tasks=tuple(task for task in all_tasks.tasks if not only or task.name in only))
        rows = await bench.play(suite)
        again = await bench.play(suite) if timed else rows
        rows = [row | {"seconds": warm["seconds"]} for row, warm in zip(rows, again, strict=True)]
        return Played(servers, sum(map(len, bench.tools.values())), rows)


# ---------------------------------------------------------------- the page

COLUMNS = ("way", "definitions", "results", "written", "read in all", "round trips", "time")


def tables(played: Played) -> list[str]:
    """Return the tables of one set: each task in each way, and what each way comes to."""
    used = ", ".join(f"`{REAL_SERVERS[name].package}`" for name in played.servers.used)
    listed = len(played.servers.listed) + len(played.servers.twice)
    more = f", and the lists of {listed} more" if listed else ""
    lines = [f"### {played.servers.name.capitalize()}: {played.tools}", "", f"{used}{more}.", ""]
    lines += [f"| task | {' | '.join(WAYS)} |", "|---" * (len(WAYS) + 1) + "|"]
    lines += [_task_line(played, task) for task in played.tasks]
    lines += ["", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return lines + [_way_line(played, way) for way in WAYS] + [""]


def _task_line(played: Played, task: str) -> str:
    rows = [played.row(task, way) for way in WAYS]
    cells = [f"{_marked(row, rows, 'input')} in {_marked(row, rows, 'round_trips')}" for row in rows]
    return f"| {task} | {' | '.join(cells)} |"


def _marked(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """Return a figure, in bold where it is the least of all ways."""
    return f"**{row[key]:,}**" if row[key] == min(other[key] for other in rows) else f"{row[key]:,}"


def _way_line(played: Played, way: str) -> str:
    rows = [row for row in played.rows if row["way"] == way]
    sums = {key: sum(row[key] for row in rows) for key in ("results", "output", "input", "round_trips", "seconds")}
    flat = sum(row["seconds"] for row in played.rows if row["way"] == "flat")
    cells = [rows[0]["definitions"], sums["results"], sums["output"], sums["input"], sums["round_trips"]]
    return f"| {way} | {' | '.join(f'{cell:,}' for cell in cells)} | {sums['seconds'] / flat:.1f} |"


async def main() -> None:
    """Print the tables, or put them into the page."""
    lines: list[str] = []
    for servers in SETS:
        played = await play(servers, timed=True)
        for row in played.rows:
            if row["problem"]:
                print(f"not solved: {row['task']} by {row['way']}: {row['problem']}", file=sys.stderr)
        lines += tables(played)
    if "--write" not in sys.argv[1:]:
        print("\n".join(lines))
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{head}{START}\n{'\n'.join(lines)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
