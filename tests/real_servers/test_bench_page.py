"""The tables of the page on the bench are what the tasks come to over real servers, here and now."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from bench_tasks import END, PAGE, SETS, START, Played, ServerSet, play  # noqa: E402 - the path comes first

from ot.bench.ways import WAYS  # noqa: E402 - as above

# The first time on a machine, the servers are installed and asked for their lists.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

TOLERANCE = 0.05
"""Of tokens: times of day, ports and names of directories differ from run to run."""
CELL = re.compile(r"\**([\d,]+) in (\d+)\**")
Cells = dict[tuple[str, str], tuple[int, int]]


def page_cells(servers: ServerSet) -> tuple[int, Cells]:
    """Return how many tools the page gives a set, and tokens and round trips for each task and way."""
    tables = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    section = tables.partition(f"### {servers.name.capitalize()}: ")[2].partition("### ")[0]
    cells: Cells = {}
    for line in section.splitlines():
        task, *found = [part.strip() for part in line.strip("|").split("|")]
        if len(found) == len(WAYS) and (read := [CELL.fullmatch(part) for part in found]) and all(read):
            for way, match in zip(WAYS, read, strict=True):
                assert match
                cells[task, way] = int(match[1].replace(",", "")), int(match[2])
    return int(section.split()[0]), cells


def differences(played: Played) -> list[str]:
    """Return where the page and what was measured now are further apart than the page says."""
    count, cells = page_cells(played.servers)
    found = [f"{count} tools on the page, {played.tools} now"] if count != played.tools else []
    found += [f"only on one side: {key}" for key in cells.keys() ^ {(row["task"], row["way"]) for row in played.rows}]
    for row in played.rows:
        tokens, round_trips = cells.get((row["task"], row["way"]), (0, 0))
        if round_trips != row["round_trips"] or abs(row["input"] - tokens) > TOLERANCE * tokens:
            now = f"{row['input']:,} in {row['round_trips']}"
            found.append(f"{row['task']}, {row['way']}: {tokens:,} in {round_trips} on the page, {now} now")
    return found


@pytest.mark.parametrize("servers", SETS, ids=lambda servers: servers.name)
async def test_the_page_is_what_is_measured(servers: ServerSet) -> None:
    played = await play(servers)
    assert [row["problem"] for row in played.rows if row["problem"]] == []
    assert differences(played) == [], "run: python benchmarks/bench_tasks.py --write"
