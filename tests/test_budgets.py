"""What a run and a nested call cost stays what it is, in bytecodes: unlike times they do not depend on the machine."""

from __future__ import annotations

import logging
import math
import sys
import threading
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import CodeType

import pytest
from benchmarks.budgets import BUDGETS, as_json, compare, read_lines

from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.program import Program
from ot.workspace import Workspace
from run_app import running_app
from stubs import StubEngine
from workers.watched_workers import write_pack

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="each version of Python has bytecodes of its own"),
]
COUNTS = tomllib.loads(BUDGETS.read_text())["bytecodes"]
WITHIN = 0.03
CALLS = 10
ECHO = "def echo(*, nonce: str) -> str:\n    return nonce\n"
SHOP = {"shop": '__ot_pure__ = ["order"]\n__ot_read_only__ = ["order"]\ndef order(*, id: int) -> int:\n    return id'}
TOOLS = {
    "shop.order(id=1)": ("shop", "order", (), {"id": 1}),
    "bench.echo(nonce='x')": ("bench", "echo", (), {"nonce": "x"}),
}
"""What programs call, ten times: a tool in this process, and one in a worker, which the ledger records."""
monitoring = sys.monitoring


async def call_some(program: Program, reach: Reach) -> Outcome:
    for _ in range(CALLS if program.source in TOOLS else 0):
        await reach.call(*TOOLS[program.source], line=1)
    return Outcome(2)


async def test_a_run_and_a_nested_call_take_as_many_bytecodes_as_their_budgets_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "ot")  # whatever tests before this one have set
    async with running_app(tmp_path, SHOP, engine=StubEngine(call_some)) as app:
        run = await bytecodes(app, "1+1")
        nested = (await bytecodes(app, "shop.order(id=1)") - run) / CALLS
    write_pack(tmp_path / "user", "bench", ECHO)
    async with running_app(tmp_path, engine=StubEngine(call_some)) as app:
        worker = (await bytecodes(app, "bench.echo(nonce='x')") - await bytecodes(app, "1+1")) / CALLS
    found = {"run": run, "nested_call": nested, "worker_call": worker}
    wrong = {name: round(count) for name, count in found.items() if abs(count / COUNTS[name] - 1) > WITHIN}
    assert not wrong, f"{wrong}, where benchmarks/budgets.toml says {COUNTS}: change it there if that is meant"


def test_a_bound_is_reached_only_if_the_upper_end_of_the_interval_is_within_it() -> None:
    (line,) = read_lines(["run_exact"], rounds=20)
    line = replace(line, of={"steady": 1.0, "slow": 0.9, "unsure": 1.0, "unbound": math.inf})
    took = {"now": [1.0] * 20, "steady": [1.0] * 20, "slow": [1.0] * 20, "unsure": [1.5, 0.5] * 10, "unbound": [1] * 20}
    found = {row.of: row for row in compare(line, took)}
    assert {of: row.reached for of, row in found.items()} == {
        "steady": True, "slow": False, "unsure": False, "unbound": True,
    }  # fmt: skip
    assert [row.verdict.partition(":")[0] for row in found.values()] == ["yes", "no", "no", ""]
    assert "measure more rounds" in found["unsure"].verdict
    assert as_json(found["unbound"])["bound"] is None


async def bytecodes(app: Workspace, command: str, rounds: int = 9) -> float:
    """Return how many bytecodes a run of *command* takes on the event loop's thread, the first runs left out."""
    for _ in range(5):
        assert not (await app.run(command)).is_error
    loop, count, counts = threading.get_ident(), 0, list[int]()

    def add(code: CodeType, offset: int) -> None:
        nonlocal count
        count += threading.get_ident() == loop

    monitoring.use_tool_id(monitoring.PROFILER_ID, "budgets")
    try:
        monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.INSTRUCTION, add)
        for _ in range(rounds):
            count = 0
            monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.INSTRUCTION)
            await app.run(command)
            monitoring.set_events(monitoring.PROFILER_ID, 0)
            counts.append(count)
    finally:
        monitoring.free_tool_id(monitoring.PROFILER_ID)
    return median(counts)
