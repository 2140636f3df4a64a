"""Workers that are late, or write where they should not; no reply is another call's; every fault has a test."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

import anyio
import pytest

from ot.errors import OneToolError, ToolTimeout
from pace import PATIENCE, TURNS
from proxied.desk import until
from workers.corpus_faults import Fault, fault, faults
from workers.door import Door
from workers.process_watch import assert_gone, below_this
from workers.watched_workers import LONG_CONFIG, WatchedWorkers

pytestmark = pytest.mark.anyio


class Clock:
    """The monotonic clock, moved on by hand."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@fault("W38")
async def test_a_slow_call_does_not_hold_up_another_pack(door: Door, fault: Fault) -> None:
    async def typical() -> float:
        seconds: list[float] = []
        for number in range(200):
            begun = time.perf_counter()
            assert f"{number}" == await door("calm.echo", nonce=f"{number}")
            seconds.append(time.perf_counter() - begun)
        return median(seconds)

    await door("calm.echo", nonce="")
    with anyio.fail_after(60):
        alone = [await typical() for _ in range(TURNS)]
        slow = asyncio.create_task(door("faulty.wait", seconds=90))
        # The machine is shared: of three tries one must be undisturbed.
        assert min([await typical() for _ in range(TURNS)]) <= 2 * max(alone)
        assert not slow.done()
        slow.cancel()
        with suppress(asyncio.CancelledError):
            await slow


@fault("W39")
@pytest.mark.parametrize("tool", ["spin", "wait", "wait_for_child"])
async def test_a_cancelled_call_is_stopped_and_the_next_one_is_clean(
    door: Door, tool: str, fault: Fault, tmp_path: Path
) -> None:
    await door("faulty.echo", nonce="")
    arguments = {} if tool == "wait_for_child" else {"seconds": 90}
    before, worker = below_this(), door.pid("faulty")
    call = asyncio.create_task(door(f"faulty.{tool}", **arguments, began=str(tmp_path / "began")))
    with anyio.fail_after(PATIENCE):
        await until((tmp_path / "began").exists)
        await asyncio.wait((call,), timeout=0.1)  # until it is where it takes long
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "clean" == await door("faulty.echo", nonce="clean")
    if tool == "spin":  # pure Python can be interrupted
        assert worker == door.pid("faulty")
    else:  # C cannot: the whole tree is killed
        assert worker != door.pid("faulty")
        assert_gone([worker, *(below_this() - before - {door.pid("faulty")} - guards(door))])


def guards(door: Door) -> set[int]:
    """Return the guards of the workers that live."""
    return {worker._process._spawned.guard.pid for worker in door.pool._all()}


async def test_the_other_calls_of_a_worker_that_is_killed_say_so(door: Door, tmp_path: Path) -> None:
    await door("faulty.echo", nonce="")
    began = tmp_path / "one", tmp_path / "other"
    stubborn = asyncio.create_task(door("faulty.wait", seconds=90, began=str(began[0])))
    other = asyncio.create_task(door("faulty.wait", seconds=80, began=str(began[1])))
    with anyio.fail_after(PATIENCE):
        await until(lambda: all(file.exists() for file in began))
        await asyncio.wait((stubborn, other), timeout=0.2)  # until both are where they take long
        stubborn.cancel()
        with pytest.raises(OneToolError, match="died during the call"):
            await other


@fault("W40")
async def test_a_reply_that_comes_too_late_is_nobodys(tmp_path: Path, fault: Fault) -> None:
    door = Door(tmp_path, seconds=0.2)
    try:
        for turn in range(8):
            late = 0.2 + random.Random(fault["seed"] * 100 + turn).uniform(-0.005, 0.03)
            with suppress(ToolTimeout):
                assert "late" == await door("faulty.wait", seconds=late, value="late")
            assert f"own-{turn}" == await answered_in_time(door, f"own-{turn}")
    finally:
        await door.aclose()


async def answered_in_time(door: Door, nonce: str) -> object:
    """Return the answer to a call, which a busy machine may take too long over more than once."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(ToolTimeout):
                return await door("faulty.echo", nonce=nonce)


@fault("W41")
async def test_a_worker_is_never_idle_during_a_call(tmp_path: Path, fault: Fault) -> None:
    door = Door(tmp_path, idle_seconds=0.3)
    try:
        with anyio.fail_after(PATIENCE):
            assert "done" == await door("faulty.wait", seconds=1.5, value="done")
    finally:
        await door.aclose()


@fault("W42")
@pytest.mark.parametrize("hours", [1, -1])
async def test_the_wall_clock_ends_no_worker_and_no_call(
    door: Door, hours: int, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    await door("faulty.echo", nonce="")
    worker, real = door.pid("faulty"), time.time
    call = asyncio.create_task(door("faulty.wait", seconds=0.3, value="done"))
    with monkeypatch.context() as patch, anyio.fail_after(PATIENCE):
        patch.setattr(time, "time", lambda: real() + hours * 3600)
        door.pool.reap_idle()
        assert "done" == await call
        door.pool.reap_idle()
        await door("faulty.echo", nonce="")
    assert worker == door.pid("faulty")


async def boundary(directory: Path, turns: int, seed: int) -> int:
    """Call around the very moment at which the worker has been idle for its time; return how often it was ended."""
    clock, chance = Clock(), random.Random(seed)
    door = Door(directory, clock=clock, idle_seconds=600)
    pids: set[int] = set()
    try:
        for turn in range(turns):
            assert f"{turn}" == await door("calm.echo", nonce=f"{turn}")
            pids.add(door.pid("calm"))
            clock.ahead = (
                600 + chance.choice([-0.001, 0.0, 0.001]) - (time.monotonic() - door.workers("calm")[0].last_used)
            )
            call = asyncio.create_task(door("calm.echo", nonce="next"))
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            door.pool.reap_idle()
            assert "next" == await call
            clock.ahead = 0.0
    finally:
        await door.aclose()
    return len(pids)


@fault("W43", repetitions=1)
async def test_no_call_is_lost_at_the_boundary_of_the_idle_time(tmp_path: Path, fault: Fault) -> None:
    with anyio.fail_after(60):
        assert await boundary(tmp_path, 40, 1) > 1


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_no_call_is_lost_at_the_boundary_of_the_idle_time_a_thousand_times(tmp_path: Path) -> None:
    assert await boundary(tmp_path, 1000, 2) > 1


@fault("W36")
async def test_a_thread_that_never_ends_does_not_keep_an_idle_worker_alive(tmp_path: Path, fault: Fault) -> None:
    door = Door(tmp_path, idle_seconds=0.2)
    try:
        with anyio.fail_after(PATIENCE):
            assert "mine" == await door("faulty.talk_on", value="mine")
            worker = door.pid("faulty")
            while door.workers("faulty"):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.05)
            await door.pool._settle()
        assert_gone([worker])
        assert os.getpid() not in below_this()
    finally:
        await door.aclose()


MB = 1 << 20


@fault("W04")
def test_what_a_tool_prints_goes_beside_its_value(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run("faulty.say(text='hello', value='mine')")
    assert ["hello", "mine"] == [text.strip() for text in reply.texts]


@fault("W05")
def test_a_forged_reply_reaches_nobody(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run("faulty.forge(value='REAL')")
    assert "REAL" == reply.texts[-1]
    assert "SPOOFED" not in server.wire.run("faulty.echo(nonce='next')").text


@fault("W06")
def test_bytes_on_standard_output_from_python_c_and_a_child_reach_nobody(server: WatchedWorkers, fault: Fault) -> None:
    junk = b'junk\n{"jsonrpc":"2.0","id":1,"result":{}}\n'.hex()
    assert "REAL" == server.run(f"faulty.raw(hex='{junk}', value='REAL')").texts[-1]


@fault("W08")
@pytest.mark.parametrize(
    "junk", [b"\xff\xfe\x00\n", b"{}\n[]\nnull\n", b"[" * 100_000 + b"\n", b'{"id":{}}\n', b"NaN\n"]
)
def test_bytes_on_the_wire_itself_that_are_no_message_are_skipped(
    server: WatchedWorkers, junk: bytes, fault: Fault
) -> None:
    assert "REAL" == server.run(f"faulty.on_wire(hex='{junk.hex()}', value='REAL')").texts[-1]


@fault("W10")
def test_a_reply_may_come_byte_by_byte(server: WatchedWorkers, fault: Fault) -> None:
    value = "é" * 200
    assert value == server.run(f"faulty.bytewise(value='{value}')").text
    assert "back" == server.run("faulty.bytewise(value='back', on=False)").text


@fault("W12")
def test_a_flood_on_standard_error_is_drained(patient: WatchedWorkers, fault: Fault) -> None:
    assert "done" == patient.run(f"faulty.flood(size={20 * MB}, value='done')").text


@fault("W13")
def test_a_flood_without_lines_is_drained_too(patient: WatchedWorkers, fault: Fault) -> None:
    assert "done" == patient.run(f"faulty.flood(size={20 * MB}, hex='00', value='done')").text


@fault("W12", "W13")
def test_the_last_words_of_a_flood_are_in_the_error(server: WatchedWorkers, fault: Fault) -> None:
    reply = server.run(f"[faulty.flood(size={MB}, hex='776f7264'), faulty.kill()]")
    assert "word" in reply.text and len(reply.text) < 4_000


@fault("W36")
def test_a_thread_that_talks_on_after_its_call_disturbs_no_other(server: WatchedWorkers, fault: Fault) -> None:
    assert "mine" == server.run("faulty.talk_on(value='mine')").texts[-1]
    for number in range(20):
        assert f"n{number}" == server.wire.run(f"faulty.echo(nonce='n{number}')").text
    server.run("faulty.kill()")


@fault("W35", "W01")
@pytest.mark.parametrize("how", ["return", "raise", "die"])
def test_a_secret_leaves_by_no_way(server: WatchedWorkers, how: str, fault: Fault) -> None:
    reply = server.run(f"faulty.leak(how='{how}')")
    assert "canary" not in reply.raw_line.decode()


@fault("W37")
def test_eight_callers_get_their_own_answers(patient: WatchedWorkers, fault: Fault) -> None:
    def crowd() -> None:
        numbers = {
            n: patient.wire.send_run(f"[faulty.echo(nonce='{n}-{{}}'.format(i)) for i in range(50)]") for n in range(8)
        }
        for n, number in numbers.items():
            reply = patient.wire.wait(number)
            assert not reply.is_error, reply.text
            assert "[" + ",".join(f'"{n}-{i}"' for i in range(50)) + "]" == reply.text

    patient.survive(crowd)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedWorkers]:
    """A server that gives a run time to write much, also on a busy machine."""
    config = LONG_CONFIG + "snippets: {hello: {body: '1'}}\n"
    with WatchedWorkers.started(tmp_path_factory.mktemp("patient"), config) as watched:
        yield watched


@fault("W09", repetitions=5)
def test_a_value_of_a_gigabyte_is_stored_and_not_read_into_the_server(patient: WatchedWorkers, fault: Fault) -> None:
    """A program gets an error that names the handle; the worker puts up to 1 GiB into a file, more is refused."""
    size = 1 << 27
    replies: list[str] = []
    grown = patient.peak_growth_mb(lambda: replies.append(patient.wire.run(f"faulty.large(size={size})").text))
    assert f"{size:,} bytes" in replies[0] and "ot.result(handle=" in replies[0]
    assert grown <= 128
    patient.survive(lambda: None)
    assert [] == list((patient.place.home / ".onetool" / "spool").rglob("taken-*"))


@pytest.mark.soak
def test_a_value_of_a_whole_gigabyte_is_stored(patient: WatchedWorkers) -> None:
    replies: list[str] = []
    program = f"faulty.large(size={1 << 30})"
    grown = patient.peak_growth_mb(lambda: replies.append(patient.wire.run(program, timeout=60).text))
    assert f"{1 << 30:,} bytes" in replies[0] and "ot.result(handle=" in replies[0]
    assert grown <= 128


HERE = Path(__file__).parent


def test_every_fault_of_the_areas_is_proved_by_a_test() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    named = {id for ids in re.findall(r"@fault\(([^)]*)\)", sources) for id in re.findall(r'"(W\d\d)"', ids)}
    assert set(faults()) == named
