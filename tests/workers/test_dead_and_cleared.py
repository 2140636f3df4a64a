"""Workers that die before they read a call, and workers whose spool directory is taken away."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from ot.errors import ResultTooLarge, WorkerDied
from pace import PATIENCE, wait_while
from workers.door import Door, extension

pytestmark = pytest.mark.anyio

ONCE = '''
import os, signal

pack = "once"
__all__ = ["ready", "note", "large"]


def ready() -> int:
    """Tell who answers."""
    return os.getpid()


def large(*, size: int) -> str:
    """Return a long text."""
    return "x" * size


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


def stop(pid: int) -> None:
    """Stop a worker, and return once no thread of it reads any more."""
    os.kill(pid, signal.SIGSTOP)
    threads = list(Path(f"/proc/{pid}/task").glob("*/stat"))
    wait_while(lambda: {thread.read_text().rpartition(")")[2].split()[0] for thread in threads} != {"T"})


def marks(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def test_a_call_to_a_worker_that_is_dead_and_not_noticed_yet_is_carried_out_by_another(
    once: Door, tmp_path: Path
) -> None:
    pid, file = once.pid("once"), tmp_path / "marks"
    os.kill(pid, signal.SIGKILL)
    # No turn of the event loop, so the server does not know. Until it is buried, a thread of it may still read.
    while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC240, PTH110 - see above
        assert once.workers("once")[0].usable
    assert await once("once.note", file=str(file), text="abc") == 3
    assert marks(file) == "x"
    assert once.pid("once") != pid


@pytest.mark.parametrize(("times", "length"), [(3, 3), (1, 300_000)], ids=["in the pipe", "larger than the pipe"])
async def test_a_call_that_a_stopped_worker_leaves_unread_is_carried_out_once_by_another(
    once: Door, tmp_path: Path, times: int, length: int
) -> None:
    pid, file = once.pid("once"), tmp_path / "marks"
    stop(pid)
    calls = [asyncio.ensure_future(once("once.note", file=str(file), text="x" * length)) for _ in range(times)]
    worker = once.workers("once")[0]
    async with asyncio.timeout(PATIENCE):
        while not worker._pending:  # noqa: ASYNC110 - a number, no event
            await asyncio.sleep(0)
    os.kill(pid, signal.SIGKILL)
    assert await asyncio.wait_for(asyncio.gather(*calls), PATIENCE) == [length] * times
    assert marks(file) == "x" * times


async def test_a_call_that_its_worker_has_read_is_never_repeated(once: Door, tmp_path: Path) -> None:
    file = tmp_path / "marks"
    with pytest.raises(WorkerDied, match="SIGKILL"):
        await once("once.note", file=str(file), die=True)
    assert marks(file) == "x"


async def test_a_spool_directory_that_is_deleted_under_a_worker_is_made_again(once: Door, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ResultTooLarge, match="handle-"):
            await once("once.large", size=9_000_000)
        shutil.rmtree(tmp_path / "state" / "spool")
    assert once.stored == [9_000_000, 9_000_000]
    spool = tmp_path / "state" / "spool"
    with pytest.raises(ResultTooLarge):
        await once("once.large", size=9_000_000)
    assert {path.stat().st_mode & 0o777 for path in (spool, *spool.rglob("*"))} == {0o700}
