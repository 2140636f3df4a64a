"""The control group of the exact engine: in trees of plain files, and in the kernel's own where they can be had."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import exact_attacks
import psutil
import pytest
from exact_ways import SOURCE

from ot.config.models import Engines, Limits
from ot.errors import EngineUnavailable, ProgramFailed
from ot.execution.deadline import Deadline
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.forked.cgroup import (
    BASE_BYTES,
    MAX_THREADS,
    SHARE_OF_MACHINE,
    GroupPlace,
    JailGroup,
    Places,
    get_start_time,
    most_memory,
    own_name,
    own_places,
    sweep,
)
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program
from pace import PATIENCE

pytestmark = pytest.mark.anyio

LIMITS = Limits(memory_mb=128, cpu_seconds=20, run_seconds=20)
MIB = 1 << 20


async def run(engine: ExactEngine, source: str) -> object:
    """Return the value of a program."""
    return (await engine.run(parse_program(source), exact_attacks.NoPacks(), LIMITS, Deadline.after(20))).value


# ---------------------------------------------------------------- trees of plain files


def plain_group(directory: Path, *controllers: str, programs: int = 10) -> tuple[JailGroup, Path]:
    """Return a group that is made of plain files, and its directory."""
    directory.mkdir()
    group = JailGroup(programs, Places((GroupPlace(directory, controllers, unified=False),), {}))
    return group, next(directory.iterdir())


def test_processes_are_limited_to_the_places_and_all_threads(tmp_path: Path) -> None:
    _, made = plain_group(tmp_path / "own", "pids", programs=70)
    assert (made / "pids.max").read_text() == str(70 + MAX_THREADS)


def test_memory_for_all_is_what_all_places_need_and_grows_with_the_limit_of_each(tmp_path: Path) -> None:
    group, made = plain_group(tmp_path / "own", "memory", programs=2)
    limit = made / "memory.limit_in_bytes"
    assert int(limit.read_text()) == most_memory(tmp_path)
    (made / "memory.usage_in_bytes").write_text(f"{30 * MIB}\n")
    for each, counted in ((16, 16), (32, 32), (16, 32)):
        group.allow(each * MIB)
        assert int(limit.read_text()) == 30 * MIB + BASE_BYTES + 2 * counted * MIB


def test_programs_get_a_part_of_the_machine_or_of_what_the_server_may_use(tmp_path: Path) -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert most_memory(tmp_path) == int(machine * SHARE_OF_MACHINE)
    own = tmp_path / "slice" / "scope"
    own.mkdir(parents=True)
    (own / "memory.max").write_text("max\n")
    (own.parent / "memory.max").write_text(f"{100 * MIB}\n")
    assert most_memory(own) == 75 * MIB
    (own / "memory.stat").write_text(f"cache 0\nhierarchical_memory_limit {40 * MIB}\n")
    assert most_memory(own) == 30 * MIB


def test_each_end_for_memory_is_told_once(tmp_path: Path) -> None:
    group, made = plain_group(tmp_path / "own", "memory")
    assert not group.was_out_of_memory()
    (made / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert [group.was_out_of_memory() for _ in range(3)] == [True, True, False]


def test_a_command_joins_every_group_before_it_starts(tmp_path: Path) -> None:
    group, made = plain_group(tmp_path / "own with space", "pids")
    command = group.joining([sys.executable, "-c", "import sys; print(sys.argv[1:])", "--", "a b"])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("['--', 'a b']\n", "")
    assert (made / "cgroup.procs").read_text() == "0\n"


def test_a_process_that_could_not_join_is_not_held(tmp_path: Path) -> None:
    group, _ = plain_group(tmp_path / "own", "pids", "memory")
    found = group.report(os.getpid())
    assert found.held == ()
    assert len(found.missing) == 2
    assert "could not join" in found.why


def test_only_empty_groups_of_servers_that_are_gone_are_swept(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        begun = get_start_time(gone.pid)
    dead, full = tmp_path / f"onetool-{gone.pid}-{begun}-0", tmp_path / f"onetool-{gone.pid}-{begun}-1"
    reused = tmp_path / f"onetool-{os.getpid()}-{get_start_time(os.getpid()) + 1}-server"
    kept = [full, tmp_path / own_name("0"), tmp_path / "onetool-data", tmp_path / "user.slice"]
    for directory in (dead, reused, *kept):
        directory.mkdir()
    (full / "somebody").touch()
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)


async def test_a_group_that_is_demanded_and_missing_is_a_refusal() -> None:
    settings = Engines.model_validate({"exact": {"require_layers": ["cgroup"]}})
    choice = EngineChoice(settings, lambda: ExactEngine(cgroup=False, require_layers=["cgroup"]))
    try:
        with pytest.raises(EngineUnavailable, match=r"layer 'cgroup' does not hold.*Delegate=yes"):
            await choice.choose()
    finally:
        await choice.aclose()


async def test_health_tells_what_the_group_limits_or_why_it_does_not() -> None:
    engine = ExactEngine(ready=0)
    try:
        found = (await engine.open()).group
        assert found is not None
        assert set(found.held) | set(found.why_not) == {"pids", "memory", "cpu"}
        details = engine.details()
        assert details["layers"]["cgroup"].startswith("on" if not found.missing else "in part" if found.held else "off")
        assert ("cgroup" in details.get("to_enable", {})) == bool(found.missing)
        assert all(why in details["why_not"]["cgroup"] for why in found.why_not.values())
    finally:
        await engine.aclose()


# ---------------------------------------------------------------- the kernel's own


@pytest.fixture
def places() -> Places:
    """Return where groups can be made here."""
    found = own_places()
    if not found.found:
        pytest.skip(f"no control group is available here: {found.why_not}")
    return found


@pytest.fixture
async def engine(places: Places) -> AsyncGenerator[ExactEngine]:
    """Yield an engine in a group that is gone afterwards."""
    engine = ExactEngine(ready=2)
    try:
        await engine.start(LIMITS)
        yield engine
    finally:
        await engine.aclose()
    assert list(groups_of(places, os.getpid())) == []


def groups_of(places: Places, pid: int) -> Iterator[Path]:
    """Yield the groups of one server."""
    for place in places.found:
        yield from place.directory.glob(f"onetool-{pid}-*-[0-9]*")


def names_of(pid: int) -> set[str]:
    """Return the groups of ours that a process is in."""
    return set(re.findall(r"onetool-[\d-]+\d", Path(f"/proc/{pid}/cgroup").read_text()))


def groups_below() -> list[frozenset[str]]:
    """Return the groups of each process that this one has started and that still lives: a waiting child may go."""
    groups: list[frozenset[str]] = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            names = frozenset(names_of(process.pid))
            groups += [names] if process.status() != psutil.STATUS_ZOMBIE else []
    return groups


async def test_the_zygote_and_all_its_children_are_in_the_group(engine: ExactEngine, places: Places) -> None:
    name = f"onetool-{os.getpid()}-{get_start_time(os.getpid())}-0"
    groups = groups_below()
    assert len(groups) >= 3  # the zygote, and two that wait
    assert {frozenset({name})} == set(groups)
    assert names_of(os.getpid()) <= {own_name("server")}
    held = {controller for place in places.found for controller in place.controllers}
    assert engine.locked is not None
    assert engine.locked.group is not None
    assert set(engine.locked.group.held) == held


@pytest.mark.parametrize("namespaces", [True, False])
async def test_no_program_gets_out_of_the_group(places: Places, namespaces: bool) -> None:
    engine = ExactEngine(namespaces=namespaces, ready=0)
    session = await engine.open_session()
    try:
        await engine.open()
        groups = [*(place.directory for place in places.found), *groups_of(places, os.getpid())]
        program = parse_program(LEAVING.format(paths=[str(group / "cgroup.procs") for group in groups]))
        outcome = await session.run(program, exact_attacks.NoPacks(), LIMITS, Deadline.after(20))
        assert outcome.value == []
        assert session._child is not None
        assert names_of(session._child.pid) == {own_name("0")}
    finally:
        await session.aclose()
        await engine.aclose()


LEAVING = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
left = []
def tried(name, attempt):
    try:
        attempt()
    except OSError:
        return
    left.append(name)
def raw(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
def clone_into():
    # struct clone_args: flags CLONE_INTO_CGROUP, and a descriptor of the group
    arguments = (ctypes.c_uint64 * 11)(0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 3)
    raw(435, ctypes.byref(arguments), ctypes.sizeof(arguments))
for path in {paths}:
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY, os.O_PATH):
        tried(path, lambda: os.write(os.open(path, flags), b"0"))
        tried("open " + path, lambda: os.close(os.open(path, flags & ~os.O_PATH)))
    tried("make below " + path, lambda: os.mkdir(os.path.dirname(path) + "/mine"))
tried("clone into", clone_into)
tried("leave the namespace", lambda: raw(308, 3, 0x02000000))
tried("make a namespace", lambda: raw(272 if os.uname().machine == "x86_64" else 97, 0x02000000))
tried("raise its priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
tried("say that it must not be ended", lambda: open("/proc/self/oom_score_adj", "w").write("-1000"))
left
"""


def test_a_group_outlives_a_killed_server_only_until_the_next_start(places: Places) -> None:
    with subprocess.Popen(
        [sys.executable, exact_attacks.__file__, "--linger"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == "running\n"
        assert len(list(groups_of(places, server.pid))) == len(places.found)
        below = psutil.Process(server.pid).children(recursive=True)
        server.kill()
    psutil.wait_procs(below, timeout=PATIENCE)
    JailGroup(1).remove()
    assert list(groups_of(places, server.pid)) == []


@pytest.fixture
def handed_over() -> Iterator[None]:
    """Hand this process a group of its own for memory, as systemd would, where the one that it is in is another's."""
    if "not delegated" not in own_places().why_not.get("memory", "") or os.geteuid():
        yield
        return
    line = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in line)
    outer = Path("/sys/fs/cgroup/memory", line.rpartition(":")[2].lstrip("/"))
    inner = outer / f"test-{os.getpid()}"
    inner.mkdir()
    try:
        os.setxattr(inner, "trusted.delegate", b"1")
        (inner / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        for pid in (inner / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (outer / "cgroup.procs").write_text(pid)
        inner.rmdir()


@pytest.mark.usefixtures("handed_over")
async def test_memory_that_all_programs_use_up_together_ends_one_and_nothing_else(
    places: Places, engine: ExactEngine
) -> None:
    if not any("memory" in place.controllers for place in places.found):
        pytest.skip(f"no memory can be limited here: {places.why_not['memory']}")
    group = next(group for group in groups_of(places, os.getpid()) if any(group.glob("memory.*")))
    zygote = children_in(group)
    assert zygote
    limit = next(group / name for name in ("memory.max", "memory.limit_in_bytes") if (group / name).exists())
    used = int(next(group.glob("memory.current"), group / "memory.usage_in_bytes").read_text())
    limit.write_text(str(used + 40 * MIB))
    with pytest.raises(ProgramFailed, match="more memory together") as caught:
        await run(engine, "held = [bytes([1]) * (1 << 20) for _ in range(90)]")
    assert caught.value.kind == "MemoryError"
    assert await run(engine, "len('still here')") == 10
    assert children_in(group) == zygote


def children_in(group: Path) -> set[int]:
    """Return those of our own children that are in the group: what another test has left may end at any time."""
    members = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    return {process.pid for process in psutil.Process().children()} & members


# ---------------------------------------------------------------- long runs yield


async def test_a_program_that_computes_long_yields_with_all_its_threads() -> None:
    engine = ExactEngine(ready=0)
    own = psutil.Process().nice()
    low = min(own + 10, 19)
    source = "import threading, time\nfor _ in range(2): threading.Thread(target=time.sleep, args=(60,)).start()\n"
    try:
        await engine.open()
        before = {process.pid for process in psutil.Process().children(recursive=True)}
        running = asyncio.ensure_future(run(engine, f"{source}while True: pass"))
        async with asyncio.timeout(PATIENCE):
            while nices(before) != [low, low, low]:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
        assert nices_of(before) == {own}
        running.cancel()
        await asyncio.wait([running])
    finally:
        await engine.aclose()


def nices(before: set[int]) -> list[int]:
    """Return the niceness of every thread of the processes below us that are new."""
    found: list[int] = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, OSError):
            if process.pid not in before:
                tasks = os.listdir(f"/proc/{process.pid}/task")  # noqa: PTH208 - names are all that is needed
                found += [os.getpriority(os.PRIO_PROCESS, int(task)) for task in tasks]
    return found


def nices_of(pids: set[int]) -> set[int]:
    """Return the niceness of those that are left: what another test has started may end at any time."""
    found: set[int] = set()
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.add(psutil.Process(pid).nice())
    return found


async def test_a_program_that_waits_long_keeps_its_priority() -> None:
    engine = ExactEngine(ready=0)
    try:
        await engine.open()
        before = {process.pid for process in psutil.Process().children(recursive=True)}
        running = asyncio.ensure_future(run(engine, "import time\ntime.sleep(0.4)"))
        seen: list[int] = []
        began = time.monotonic()
        while not running.done():
            seen += nices(before)
            await asyncio.sleep(0.02)
        await running
        assert time.monotonic() - began >= 0.4
        assert set(seen) == {psutil.Process().nice()}
    finally:
        await engine.aclose()
