"""Many runs in flight, whose calls go to files, workers and functions in the server: each value is the right one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.watched import Place, start_wire
from workers.watched_workers import write_pack

ECHO = "def twice(*, text: str) -> str:\n    return text * 2\n"
FILES = 50
AT_ONCE = 12
CALLS = 9
"""What the program below makes."""
PROGRAM = """
import asyncio
first = [file.read(path=f"{{n}}.txt") for n in {few}]
side = await asyncio.gather(*[echo.twice(text=f"{id}-{{n}}") for n in {few}])
file.write(path="out-{place}.txt", content="{id}")
again = file.read(path="out-{place}.txt")
tools = ot.tools(pattern="echo")
[[one.strip() for one in first], side, again.strip(), len(tools)]
"""


@pytest.mark.parametrize("engine", ["exact", "portable"])
@pytest.mark.parametrize("calls", [900, pytest.param(50_000, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_each_of_many_mixed_calls_has_the_value_of_its_own_program(engine: str, calls: int, tmp_path: Path) -> None:
    place = Place.make(tmp_path, f"engines: {{use: {engine}}}\npolicy: {{allow: ['file.write']}}\n")
    write_pack(place.home / ".onetool", "echo", ECHO)
    for number in range(FILES):
        (place.cwd / f"{number}.txt").write_text(f"content {number * 7919}\n")
    chance, open_runs, begun, wrong = random.Random(1), list[tuple[int, str]](), 0, list[str]()
    with start_wire(place) as wire:
        while begun * CALLS < calls or open_runs:
            while begun * CALLS < calls and len(open_runs) < AT_ONCE:
                few, id = [chance.randrange(FILES) for _ in range(3)], f"run{begun}"
                # As many places as runs in flight at most: no two of those write the same file.
                program = PROGRAM.format(few=few, id=id, place=begun % (4 * AT_ONCE))
                texts = [f'"content {number * 7919}"' for number in few]
                sides = [f'"{f"{id}-{number}" * 2}"' for number in few]
                expected = f'[[{",".join(texts)}],[{",".join(sides)}],"{id}",1]'
                open_runs.append((wire.send_run(program), expected))
                begun += 1
            number, expected = open_runs.pop(0)
            reply = wire.wait(number, 60)
            if reply.texts[-1] != expected:
                wrong.append(f"{reply.texts} instead of {expected}")
            wire.lines.clear()
    assert not wrong, f"{len(wrong)} of {begun}: {wrong[:3]}"
