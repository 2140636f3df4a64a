"""What a run and a nested call cost stays what it is, in bytecodes: unlike times they do not depend on the machine."""

from __future__ import annotations

import logging
import sys
import threading
import tomllib
from pathlib import Path
from statistics import median
from types import CodeType

import pytest

from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.program import Program
from ot.workspace import Workspace
from run_app import running_app
from stubs import StubEngine

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="each version of Python has bytecodes of its own"),
]
BUDGETS = tomllib.loads((Path(__file__).parents[1] / "benchmarks" / "budgets.toml").read_text())["bytecodes"]
WITHIN = 0.03
CALLS = 10
SHOP = {"shop": '__ot_pure__ = ["order"]\n__ot_read_only__ = ["order"]\ndef order(*, id: int) -> int:\n    return id'}
monitoring = sys.monitoring


async def call_some(program: Program, reach: Reach) -> Outcome:
    for _ in range(CALLS if "shop" in program.source else 0):
        await reach.call("shop", "order", (), {"id": 1}, line=1)
    return Outcome(2)


async def test_a_run_and_a_nested_call_take_as_many_bytecodes_as_their_budgets_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "ot")  # whatever tests before this one have set
    async with running_app(tmp_path, SHOP, engine=StubEngine(call_some)) as app:
        run = await bytecodes(app, "1+1")
        call = (await bytecodes(app, "shop.order(id=1)") - run) / CALLS
    found = {"run": run, "nested_call": call}
    wrong = {name: round(count) for name, count in found.items() if abs(count / BUDGETS[name] - 1) > WITHIN}
    assert not wrong, f"{wrong}, where benchmarks/budgets.toml says {BUDGETS}: change it there if that is meant"


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
