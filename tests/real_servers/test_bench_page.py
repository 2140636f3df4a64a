"""The tables of the page on the bench are what the tasks come to over real servers, here and now."""

from __future__ import annotations

import re
import shlex

import pytest
from benchmarks.bench import main
from benchmarks.bench_tasks import END, PAGE, SETS, START, Played, ServerSet, play
from benchmarks.four_ways.ways import WAYS

from cli.command import OneTool
from console_blocks import typed_commands
from real_servers.real_house import config_of, real

# The first time on a machine, the servers are installed and asked for their lists.
pytestmark = pytest.mark.timeout(400)

OFTEN = ("files and git",)
"""The smallest set with bundled packs in it; the others say the same of other servers, and are played in the soak."""
TOLERANCE = 0.05
"""Of tokens: times of day, ports and names of directories differ from run to run."""
FEW_TASKS = {"five hundred tools": ("one time",)}
"""Where the search and FastMCP's CodeMode take seconds for a task, one task stands for all."""
CELL = re.compile(r"([\d,]+) in (\d+)")
Cells = dict[tuple[str, str], tuple[int, int]]


def page_cells(servers: ServerSet) -> tuple[int, Cells]:
    """Return how many tools the page gives a set, and tokens and round trips for each task and way."""
    tables = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    section = tables.partition(f"### {servers.name.capitalize()}: ")[2].partition("### ")[0].replace("*", "")
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
    now = {(row["task"], row["way"]) for row in played.rows}
    was = {key for key in cells if key[0] in FEW_TASKS.get(played.servers.name, (key[0],))}
    found += [f"only on one side: {key}" for key in was ^ now]
    for row in played.rows:
        tokens, round_trips = cells.get((row["task"], row["way"]), (0, 0))
        if round_trips != row["round_trips"] or abs(row["input"] - tokens) > TOLERANCE * tokens:
            seen = f"{row['input']:,} in {row['round_trips']}"
            found.append(f"{row['task']}, {row['way']}: {tokens:,} in {round_trips} on the page, {seen} now")
    return found


@pytest.mark.anyio
@pytest.mark.parametrize(
    "servers",
    [
        pytest.param(servers, id=servers.name, marks=() if servers.name in OFTEN else pytest.mark.soak)
        for servers in SETS
    ],
)
async def test_the_page_is_what_is_measured(servers: ServerSet) -> None:
    played = await play(servers, only=FEW_TASKS.get(servers.name, ()))
    assert [row["problem"] for row in played.rows if row["problem"]] == []
    assert differences(played) == [], "run: python benchmarks/bench_tasks.py --write"


# ---------------------------------------------------------------- the page's own commands


def shape(text: str) -> list[list[str]]:
    """Return the words of each line; every figure is as good as another."""
    return [re.sub(r"\b[\d,.]+\b", "N", line).split() for line in text.strip().splitlines()]


def test_the_commands_of_the_page_print_what_it_shows(onetool: OneTool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (tasks,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (onetool.cwd / "tasks.yaml").write_text(tasks)
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text(config_of({"clock": real("time", onetool.cwd)}))
    for typed in typed_commands(page):
        program, *words = shlex.split(typed.command)
        assert (program, words[0]) == ("python", "benchmarks/bench.py")
        ended = onetool.call(main, *words)
        assert (ended.code, shape(ended.out)) == (0, shape(typed.output)), ended
