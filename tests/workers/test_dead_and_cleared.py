"""Packs that are bad, dead or cleared away: told, harmless to others, never imported in the server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, payload
from mcp_wire import strict_json
from ot.errors import ResultTooLarge, WorkerDied
from ot.workspace import Workspace
from pace import PATIENCE, wait_while
from run_app import paths_in, value_of
from workers.door import Door, extension, source_of
from workers.watched_workers import write_pack

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
    wait_while(lambda: states(pid) != {"T"})


def states(pid: int) -> set[str]:
    """Return the states of a process's threads; one of them may just end."""
    found: set[str] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            found.add(thread.read_text().rpartition(")")[2].split()[0])
    return found


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


USABLE = {"pack_files-21": "f", "pack_files-22": "f", "pack_files-23": "f"}
"""Files that are packs after all: their functions are odd, and can be called."""
AT_CALL = {"pack_files-20": "requires-python", "pack_files-19": "agreed"}
"""What only shows when the environment is made."""


def write_item(file: Path, item: Item) -> None:
    """Write the entry as *file*, or make what it says instead of a file."""
    kind = str(item.get("fs", ""))
    if kind.startswith("symlink"):
        file.symlink_to("/etc/shadow")
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind.startswith("directory"):
        file.mkdir()
    elif kind.startswith("world-writable"):
        file.write_text("def f(): return 1\n")
        file.chmod(0o666)
        if os.getuid() == 0:
            os.chown(file, 65534, 65534)
    else:
        found = payload(item)
        file.write_bytes(found if isinstance(found, bytes) else found.encode())


@each_item("pack_files")
async def test_a_bad_pack_is_told_and_harms_no_other(tmp_path: Path, item: Item) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "calm", source_of("calm"))
    (paths.global_dir / "tools" / "x").mkdir()
    write_item(paths.global_dir / "tools" / "x" / "x_tools.py", item)
    before = set(sys.modules)
    app = Workspace.alone(paths)
    try:
        assert "fine" == value_of(await app.run("calm.echo(nonce='fine')"))
        listed = strict_json(value_of(await app.run("__format__ = 'json'\not.packs(pattern='x')")))
        await check(app, item, next(entry for entry in listed if entry["name"] == "x"))
        assert "fine" == value_of(await app.run("calm.echo(nonce='fine')"))
        assert not [name for name in set(sys.modules) - before if name in ("x", "x_tools")]
    finally:
        await app.aclose()


async def check(app: Workspace, item: Item, listed: dict[str, object]) -> None:
    """See that the pack is broken for a reason, or can be called after all."""
    health = value_of(await app.run("ot.health()"))
    if item["id"] in USABLE:
        assert "broken" not in listed
        assert 1 == listed["tool_count"]
        await app.run(f"x.{USABLE[item['id']]}()")
    else:
        assert listed.get("broken"), listed
        assert "degraded" in health and "x" in health
        reply = await app.run("x.f()")
        assert reply.is_error


async def test_a_package_from_anywhere_but_the_index_is_not_fetched_without_consent(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    header = '# /// script\n# dependencies = ["x @ https://127.0.0.1:9/x.whl"]\n# ///\n'
    write_pack(paths.global_dir, "x", header + "def f(): return 1\n")
    app = Workspace.alone(paths)
    try:
        reply = await app.run("x.f()")
        assert reply.is_error and "which is not allowed" in reply.texts[-1]
        assert not list((paths.global_dir / "packs").rglob("*.lock"))
    finally:
        await app.aclose()
