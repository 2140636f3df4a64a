"""A call that its worker provably never read goes to another worker; one that it may have read never does."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mcp_wire import process_stat
from ot.errors import WorkerDied
from workers.door import Door, extension

pytestmark = pytest.mark.anyio

ONCE = '''
import os, signal

pack = "once"
__all__ = ["ready", "note"]


def ready() -> int:
    """Tell who answers."""
    return os.getpid()


def note(*, file: str, size: int = 0, text: str = "", die: bool = False) -> int:
    """Leave a mark, and perhaps die."""
    with open(file, "a") as marks:
        marks.write("x")
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    return len(text)
'''


@pytest.fixture
async def once(tmp_path: Path):
    door = Door(tmp_path / "state", [extension("once", ONCE)])
    await door("once.ready")
    yield door
    await door.aclose()


def marks(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_a_call_to_a_worker_that_is_dead_and_not_noticed_yet_is_carried_out_by_another(
    once: Door, tmp_path: Path
) -> None:
    pid, file = once.pid("once"), tmp_path / "marks"
    os.kill(pid, signal.SIGKILL)
    while process_stat(pid):  # no turn of the event loop: the server does not know
        assert once.workers("once")[0].usable
    assert await once("once.note", file=str(file), text="abc") == 3
    assert marks(file) == "x"
    assert once.pid("once") != pid


@pytest.mark.parametrize("length", [3, 300_000], ids=["in the pipe", "larger than the pipe"])
async def test_a_call_that_a_stopped_worker_leaves_unread_is_carried_out_once_by_another(
    once: Door, tmp_path: Path, length: int
) -> None:
    pid, file = once.pid("once"), tmp_path / "marks"
    os.kill(pid, signal.SIGSTOP)
    calls = [asyncio.ensure_future(once("once.note", file=str(file), text="x" * length)) for _ in range(3)]
    worker = once.workers("once")[0]
    async with asyncio.timeout(10):
        while not worker._pending:  # noqa: ASYNC110 - a number, no event
            await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(asyncio.gather(*calls), 20) == [length] * 3
    assert marks(file) == "xxx"


async def test_a_call_that_its_worker_has_read_is_never_repeated(once: Door, tmp_path: Path) -> None:
    file = tmp_path / "marks"
    with pytest.raises(WorkerDied, match="SIGKILL"):
        await once("once.note", file=str(file), die=True)
    assert marks(file) == "x"
