"""What people on one server share: whoever takes all of it that may be had leaves the others theirs."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from onetool_team.disk_room import ENTRY_BYTES, LOOK_SECONDS, DiskRoom, measure
from ot.execution.backends.in_process import THREADS_OF_ONE
from pace import PATIENCE
from proxied.desk import until
from team.team_bed import TeamBed, team
from workers.watched_workers import write_pack

pytestmark = pytest.mark.anyio

HOLDING = '''
"""Holds its threads."""
import os
import time
from pathlib import Path

pack = "near"


def pid() -> int:
    """Return the number of its process."""
    return os.getpid()


def hold(*, began: str, until: str) -> str:
    """Return once the file *until* is there."""
    Path(began).touch()
    while not Path(until).exists():
        time.sleep(0.01)
    return "held"


def end() -> None:
    """End the process, as a call does that ignores its cancellation."""
    os._exit(1)
'''
THREADS = 8
"""Of one worker."""


def _hold(bed: TeamBed, who: str, place: Path, number: int = 0) -> tuple[asyncio.Future[str], Path]:
    """Begin a call of *who* that holds a thread until the file *who* is in *place*; return it and what shows it."""
    began = place / f"{who}-began-{number}"
    call = f"near.hold(began={str(began)!r}, until={str(place / who)!r})"
    return asyncio.ensure_future(bed.run(who, call)), began


async def test_calls_of_one_person_in_a_pack_neither_hold_up_nor_end_those_of_another(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        write_pack(bed.home, "near", HOLDING)
        held, began = _hold(bed, "ann", tmp_path)
        greedy = [_hold(bed, "bob", tmp_path, number) for number in range(THREADS - 1)]
        await until(lambda: began.exists() and all(one.exists() for _, one in greedy))
        # One worker for both would have no thread left.
        ours = await asyncio.wait_for(bed.run("ann", "near.pid()"), PATIENCE)
        assert "died" in await bed.run("bob", "near.end()")
        assert all("died" in text for text in await asyncio.gather(*(call for call, _ in greedy)))
        (tmp_path / "ann").touch()
        assert await held == "held"
        assert await bed.run("ann", "near.pid()") == ours
        assert await bed.run("bob", "near.pid()") != ours


async def test_one_person_has_a_few_threads_of_the_server_s_process_and_another_has_others(tmp_path: Path) -> None:
    running, release = Counter[str](), threading.Event()

    def hold(*, who: str) -> str:
        running[who] += 1
        release.wait(PATIENCE)
        return who

    async with team(tmp_path, functions={"hall": {"hold": hold}}) as bed:
        async with asyncio.TaskGroup() as calls:
            for _ in range(2 * THREADS_OF_ONE):
                calls.create_task(bed.run("bob", "hall.hold(who='bob')"))
            await until(lambda: running["bob"] == THREADS_OF_ONE)
            ours = calls.create_task(bed.run("ann", "hall.hold(who='ann')"))
            await until(lambda: running["ann"] == 1)
            assert running["bob"] == THREADS_OF_ONE
            release.set()
        assert ours.result() == "ann"
        assert running["bob"] == 2 * THREADS_OF_ONE


# ---------------------------------------------------------------- the disk

MB = 1 << 20
FULL = "http.workspaces.disk_bytes"
WRITE = "file.write(path={name!r}, content='x' * {size})"
OPEN = "with open({name!r}, 'wb') as stream:\n    stream.write(b'x' * {size})"


def disk(room: int, each: str = "") -> dict[str, object]:
    """Return a configuration in which everyone may write *room* bytes, and is asked nothing."""
    return {"http": {"workspaces": {"disk_bytes": room, "each": each}}, "policy": {"allow": ["file.*", "git.*"]}}


@pytest.mark.parametrize("program", [WRITE, OPEN], ids=["by file functions", "by a program's own"])
async def test_what_a_directory_may_not_hold_is_refused_with_what_to_do_and_another_writes_on(
    tmp_path: Path, program: str
) -> None:
    async with team(tmp_path, disk(3 * MB)) as bed:
        for number in range(2):
            text = await bed.run("bob", program.format(name=f"{number}.txt", size=MB))
            assert FULL not in text, text
        text = await bed.run("bob", program.format(name="2.txt", size=MB))
        assert FULL in text
        assert "Delete files" in text
        assert FULL not in await bed.run("ann", program.format(name="2.txt", size=MB))
        assert FULL not in await bed.run("bob", "import os\nos.remove('0.txt')")
        assert FULL not in await bed.run("bob", program.format(name="2.txt", size=MB))


async def test_copies_new_directories_and_what_git_stages_need_room_too(tmp_path: Path) -> None:
    async with team(tmp_path, disk(2 * MB, str(tmp_path / "all"))) as bed:
        assert "1.txt" in await bed.run("bob", WRITE.format(name="1.txt", size=MB))
        (directory,) = (tmp_path / "all").iterdir()
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q"], cwd=directory, check=True)
        used = measure(str(directory))
        assert "2.txt" in await bed.run("bob", WRITE.format(name="2.txt", size=2 * MB - used - ENTRY_BYTES))
        steps = (
            "import os\nos.mkdir('a')",
            "open('b', 'w')",
            "file.make_directory(path='a')",
            "git.add(paths=['1.txt'])",
        )
        for program in ("file.copy(source='1.txt', target='3.txt')", *steps):
            assert FULL in await bed.run("bob", program), program


def test_room_counts_what_other_processes_write_and_each_name(tmp_path: Path) -> None:
    now = 0.0
    room = DiskRoom(tmp_path, 64 * ENTRY_BYTES, lambda: now)
    room.take(0)
    for number in range(64):
        (tmp_path / str(number)).touch()
    room.take(0)  # it has just looked
    now += LOOK_SECONDS
    with pytest.raises(OSError, match=FULL):
        room.take(0)


def test_a_full_directory_is_not_measured_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, measured = 0.0, 0

    def measure(directory: str) -> int:
        nonlocal now, measured
        now, measured = now + 1.0, measured + 1
        return 100

    monkeypatch.setattr("onetool_team.disk_room.measure", measure)
    room = DiskRoom(tmp_path, 100, lambda: now)
    for _ in range(10):
        with pytest.raises(OSError, match=FULL):
            room.take(1)
    assert measured == 1
    now += 20.0
    with pytest.raises(OSError, match=FULL):
        room.take(1)
    assert measured == 2


def test_measuring_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "all").symlink_to("/")
    DiskRoom(tmp_path / "room", 2 * ENTRY_BYTES).take(0)
