"""A run that a tool starts inside a run lives on what is left of the outer one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.config.models import Limits
from ot.errors import LimitExceeded
from ot.runtime.run_budget import MAX_DEPTH, RunBudget, current_budget
from run_app import Calls, error_of, running_app, value_of

pytestmark = pytest.mark.anyio

META = """
    APPS = []

    async def run(*, code: str) -> str:
        reply = await APPS[0].run(code)
        if reply.is_error:
            raise RuntimeError(reply.texts[-1])
        return reply.texts[-1]
"""


def introduce(app: object) -> None:
    """Give the pack ``meta`` the app that it runs in."""
    import sys

    module = next(
        module for name, module in sys.modules.items() if name.startswith("packs_") and name.endswith(".meta")
    )
    module.APPS.append(app)


async def test_inner_runs_spend_the_calls_of_the_outer(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}, {"limits": {"calls": 10}}) as app:
        assert error_of(await app.run("meta.run(code='1')"))
        introduce(app)
        assert value_of(await app.run("[meta.run(code='ot.version()') for i in range(5)][0]"))
        text = error_of(await app.run("[meta.run(code='ot.version()') for i in range(6)]"))
        assert "limits.calls" in text
        assert value_of(await app.run("1")) == "1"


async def test_inner_runs_end_with_the_time_of_the_outer(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}, {"limits": {"run_seconds": 0.5}}) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        text = error_of(await app.run("import time\ntime.sleep(0.3)\nmeta.run(code='import time\\ntime.sleep(0.4)')"))
        assert "limits.run_seconds" in text


async def test_runs_within_runs_are_bounded(tmp_path: Path) -> None:
    calls = Calls()
    async with running_app(tmp_path, {"meta": META}, observers=[calls]) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        calls.records.clear()
        code = "1"
        for _ in range(10):
            code = f"meta.run(code={code!r})"
        assert f"nested more than {MAX_DEPTH} levels deep" in error_of(await app.run(code))
        assert len(calls.records) == MAX_DEPTH


async def test_runs_beside_each_other_are_not_nested(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"meta": META}) as app:
        await app.run("meta.run(code='1')")
        introduce(app)
        inner = "import time\ntime.sleep(0.05)\n7"
        code = f"import asyncio\nawait asyncio.gather(*[meta.run(code={inner!r}) for i in range(8)])"
        assert value_of(await app.run(code)) == '["7","7","7","7","7","7","7","7"]'


async def test_a_run_leaves_no_budget_behind(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        await app.run("1")
        await app.run("1/0")
        assert current_budget.get() is None


def test_a_budget_counts_its_calls() -> None:
    budget = RunBudget(Limits(calls=2, run_seconds=60))
    budget.spend_call()
    budget.spend_call()
    with pytest.raises(LimitExceeded) as caught:
        budget.spend_call()
    assert caught.value.limit == "calls"
    assert 59 < budget.deadline.seconds_left <= 60
