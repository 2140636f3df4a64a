"""Objects of a zygote that count nobody: their use writes no page, and they work as before."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from exact_attacks import NoPacks

from ot.config.models import Limits
from ot.execution.deadline import Deadline
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

SOURCE = Path(__file__).parents[4] / "src"
USE = """
import sys, os, gc, asyncio, csv, dataclasses, datetime, decimal, enum, json, re, statistics, typing, weakref
sys.path.insert(0, sys.argv[1])
from ot.runtime.engines.forked.jail.zygote import make_immortal

made = [("held", [1.5, {"a": b"b"}])]
number = make_immortal()
count = sys.getrefcount(None)
assert number > 10_000, number
assert {sys.getrefcount(thing) for thing in (made, made[0][1], json.loads, re, statistics.mean.__code__)} == {count}
held = [json.loads] * 1000
assert sys.getrefcount(json.loads) == count
del held
new = object()
assert sys.getrefcount(new) < 10
made.append(new)
made[0][1].clear()

for _ in range(3):
    namespace = {}
    exec('''
import dataclasses, enum, functools, typing
class Kind(enum.Enum):
    A = 1
@dataclasses.dataclass
class Row(typing.Generic[typing.TypeVar("T")]):
    name: str
    kind: Kind = Kind.A
@functools.lru_cache
def double(x): return x * 2
def rows():
    for i in range(100): yield Row(f"n{i}")
found = [row.name for row in rows()], double(3), double(3)
try:
    {}["x"]
except KeyError as error:
    text = repr(error)
''', namespace)
    assert namespace["found"][0][99] == "n99"
    gone = weakref.ref(namespace["Row"]("x"))
    assert gone() is None
    del namespace["Row"], namespace
    gc.collect()

async def add(a, b):
    await asyncio.sleep(0)
    return a + b
async def main():
    return await asyncio.gather(*[add(i, 1) for i in range(5)])
assert asyncio.run(main()) == [1, 2, 3, 4, 5]
assert statistics.mean([decimal.Decimal(1), 2]) == decimal.Decimal("1.5")
assert datetime.datetime.strptime("2026-01-02", "%Y-%m-%d").year == 2026
assert re.sub("a+", "b", "caat") == "cbt"
del sys.modules["csv"]
import csv
print(number, flush=True)
os._exit(0)
"""


def test_what_was_made_immortal_is_counted_no_more_and_works_as_before() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", USE, str(SOURCE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 10_000


@pytest.mark.anyio
@pytest.mark.skipif(bool(ExactEngine.missing_here()), reason=ExactEngine.missing_here() or "it is here")
async def test_objects_made_before_a_fork_are_immortal_in_a_busy_zygote_too() -> None:
    program = parse_program("import sys\nsys.getrefcount(sys.modules) == sys.getrefcount(None)")
    engine, end = ExactEngine(), time.monotonic() + 30
    try:
        while not (await engine.run(program, NoPacks(), Limits(), Deadline.after(30))).value:
            assert time.monotonic() < end
    finally:
        await engine.aclose()
