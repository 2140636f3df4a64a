"""Background runs of the library go on while it is open, and are reported when it is opened again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from onetool_run import OneTool

pytestmark = pytest.mark.anyio


async def test_runs_go_on_while_it_is_open_and_are_reported_afterwards(tmp_path: Path) -> None:
    added: list[int] = []
    waits = asyncio.Event()

    def add(*, n: int) -> int:
        """Add a number."""
        added.append(n)
        return n * 2

    async def wait() -> None:
        """Wait for ever."""
        waits.set()
        await asyncio.Event().wait()

    def opened() -> OneTool:
        return OneTool(cwd=tmp_path, config_dir=tmp_path / "user", engine="portable", packs={"counter": [add, wait]})

    async with opened() as tool:
        id = (await tool.run("ot.background(command='return counter.add(n=1)')")).value["id"]
        assert ["2"] == (await tool.run(f"ot.run_state(id={id!r}, wait=20)")).value["texts"]
        cut = "counter.add(n=2)\ncounter.wait()\ncounter.add(n=3)"
        id = (await tool.run(f"ot.background(command={cut!r})")).value["id"]
        async with asyncio.timeout(20):
            await waits.wait()
    async with opened() as tool:
        state = (await tool.run(f"ot.run_state(id={id!r})")).value
        assert "stopped" == state["state"]
        report = (await tool.run(f"ot.result(handle={state['handle']!r}, path='.')")).value
        assert [("counter.add", 4)] == [(call["tool"], call["value"]) for call in report["done"]]
        assert ["counter.wait"] == [call["tool"] for call in report["unknown"]]
    assert [1, 2] == added
