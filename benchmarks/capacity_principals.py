"""What a team's server costs by the number of people that it knows and has open workspaces of.

Two servers are measured in turns: one for a single person, and one for many, of whom fifty are at work.
"""

from __future__ import annotations

import os
import secrets
import signal
import statistics
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.capacity_bed import Bed, make_home, start_process

from onetool_team.auth.static_tokens import new_token, token_hash
from state.redis_process import running_redis

ACTIVE = 50
FIRST = 20
"""People whose first request is measured."""
OPEN = 1000
"""The most workspaces that are open when a server is ended."""
CONFIG = """
engines: {{use: {engine}}}
state: {{redis: "{redis}", prefix: "{prefix}", keys: ["{key}"]}}
http:
  tokens_file: people.txt
  workspaces: {{each: "{people}", most: 10000}}
  quotas: {{in_flight: 1000, waiting: 10000, runs_per_minute: 1000000}}
"""


@dataclass
class Crowd:
    """A server, and everyone whom it knows."""

    bed: Bed
    people: Sequence[Bed]

    def cpu_ms(self) -> float:
        """Return the CPU time so far of the server with its engine."""
        return self.bed.cpu_ms("server")

    def run_each(self, people: Sequence[Bed], times: int = 1) -> float:
        """Return the CPU milliseconds of one run, over *times* of each of *people*."""
        before = self.cpu_ms()
        for _ in range(times):
            for one in people:
                one.run("1 + 1")
        return (self.cpu_ms() - before) / times / len(people)


@contextmanager
def crowd(root: Path, number: int, engine: str, redis_url: str, pid: int) -> Generator[Crowd]:
    """Yield a server that knows *number* people."""
    with ExitStack() as stack:
        tokens = [new_token() for _ in range(number)]
        # Of a name of its own in Redis: the other server is no replica of this one.
        config = CONFIG.format(
            engine=engine, redis=redis_url, prefix=root.name, key=secrets.token_hex(32), people=root / "people"
        )
        home = make_home(root / "home", "near", config)
        lines = [f"p{number} {token_hash(token)}\n" for number, token in enumerate(tokens)]
        (home / ".onetool" / "people.txt").write_text("".join(lines))
        server = start_process(stack, home, "serve", "--http", "0", "--json")
        port = int(server.told["url"].split(":")[2].split("/")[0])
        bed = Bed(home, port, tokens[0], {"server": server.pid, "redis": pid}, None)
        bed.wait_until_ready()
        yield Crowd(bed, [bed.as_another(token) for token in tokens])


def measure_principals(numbers: Sequence[int], rounds: int, engine: str) -> list[dict[str, Any]]:
    """Return what each number of people costs, beside a server for one."""
    found: list[dict[str, Any]] = []
    for number in numbers:
        with (
            running_redis() as redis,
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
            ExitStack() as stack,
        ):
            assert redis.process is not None
            one, many = (
                stack.enter_context(crowd(Path(place) / name, people, engine, redis.url, redis.process.pid))
                for name, people in (("one", 1), ("many", number))
            )
            found.append({"principals": number, **_figures(one, many, rounds)})
    return found


def _figures(one: Crowd, many: Crowd, rounds: int) -> dict[str, float]:
    active, rest = many.people[:ACTIVE], many.people[ACTIVE : ACTIVE + FIRST]
    one.run_each(one.people, ACTIVE)
    opened = [many.run_each([each]) for each in active]
    turns = [
        (one.run_each(one.people, ACTIVE), many.run_each(active, max(1, ACTIVE // len(active)))) for _ in range(rounds)
    ]
    plain = statistics.median(of_many for _, of_many in turns)
    first = [many.run_each([each]) for each in rest] or opened
    edits: list[float] = []
    for number in range(3):
        before = many.cpu_ms()
        file = many.bed.home / ".onetool" / "onetool.yaml"
        file.write_text(f"{file.read_text()}# {number}\n")
        many.run_each(active)
        edits.append(many.cpu_ms() - before - plain * len(active))
    for each in many.people[ACTIVE + FIRST : OPEN]:
        each.run("1 + 1")
    return {
        "run, CPU ms": round(plain, 2),
        "run, times that of one": round(statistics.median(of_many / of_one for of_one, of_many in turns), 3),
        "first request, CPU ms": round(statistics.median(first), 1),
        "edit, CPU ms": round(statistics.median(edits), 0),
        "open workspaces": min(len(many.people), OPEN),
        "end, seconds": round(_end(many.bed.processes["server"]), 2),
    }


def _end(pid: int) -> float:
    """Return how long the server takes to end."""
    before = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return time.monotonic() - before
