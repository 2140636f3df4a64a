"""A client that waits is told that there is something to wait for."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from fastmcp import Client

from ot.server import mcp_server
from pace import PATIENCE

pytestmark = pytest.mark.anyio

Session = Client[Any]


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell it a hundred times as often."""
    monkeypatch.setattr(mcp_server, "PROGRESS_SECONDS", 0.05)


async def test_progress_comes_as_shipped_before_any_client_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert mcp_server.PROGRESS_SECONDS <= 5.0


async def test_a_long_run_beats_and_each_beat_is_later_than_the_one_before(client: Session) -> None:
    beats: list[float] = []
    enough = anyio.Event()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        beats.append(progress)
        if len(beats) >= 3:
            enough.set()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run, client, "import time\ntime.sleep(60)", heard)
            await enough.wait()
            tasks.cancel_scope.cancel()
    assert sorted(set(beats)) == beats


async def test_no_beat_comes_after_the_reply(client: Session) -> None:
    beats: list[float] = []
    last = anyio.Event()

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        beats.append(progress)
        last.set()

    with anyio.fail_after(PATIENCE):
        await _run(client, "import time\ntime.sleep(0.12)", heard)
        await last.wait()
        heard_by_the_reply = len(beats)
        # A run of as many beats again, under a token of its own: nothing of the first may be heard meanwhile.
        await _run(client, "import time\ntime.sleep(0.12)", None)
    assert heard_by_the_reply == len(beats)


async def test_a_quick_run_needs_no_beat(client: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # a busy machine takes longer over it than between two quick beats
    beats: list[float] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        beats.append(progress)

    with anyio.fail_after(PATIENCE):
        await _run(client, "1", heard)
    assert [] == beats


async def _run(client: Session, command: str, heard: Any) -> None:
    await client.call_tool("run", {"command": command}, progress_handler=heard)
