"""Workers that reach a limit or die: the call fails alone, and the next has a new worker."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from faults.watched import ATTEMPTS, CONFIG
from mcp_wire import WireServer
from ot.errors import OneToolError, ToolBusy, ToolUnavailable
from ot.processes import guard_pipes
from ot.workers.pool import DEATHS
from pace import within
from processes.process_marks import children_of, zombies_of
from proxied.desk import until
from server_process import process_stat
from workers.corpus_faults import Fault, fault
from workers.door import Door, extension, open_files
from workers.process_watch import assert_gone, below_this, command
from workers.watched_workers import WORKER_SERVER, WatchedWorkers, WorkerPlace

pytestmark = pytest.mark.anyio


@fault("W29")
async def test_a_tool_that_takes_too_much_memory_fails_and_the_server_keeps_its_own(
    tmp_path: Path, fault: Fault
) -> None:
    """The limit that holds is RLIMIT_AS of the worker, ``workers.packs.<pack>.memory_mb``."""
    door = Door(tmp_path, memory_mb=256)
    try:
        with pytest.raises(OneToolError) as raised:
            await door("faulty.hog", mb=1024)
        assert "MemoryError" in f"{getattr(raised.value, 'kind', '')} {raised.value}"
        assert "still" == await door("faulty.echo", nonce="still")
    finally:
        await door.aclose()


@fault("W11")
async def test_a_worker_that_reads_nothing_is_told_apart_from_one_that_is_slow(door: Door, fault: Fault) -> None:
    await door("faulty.echo", nonce="")
    worker = door.pid("faulty")
    os.kill(worker, 19)  # SIGSTOP: it reads nothing
    argument = "x" * (10 << 20)
    calls = [asyncio.create_task(door("faulty.echo", nonce=argument)) for _ in range(100)]
    with anyio.fail_after(60):
        worst = await slowest_turn(lambda: sum(call.done() for call in calls) >= 90)
        refused = [call for call in calls if call.done()]
        assert {ToolBusy} == {type(call.exception()) for call in refused}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        # Arguments of as many bytes are encoded and no more: that is what the loop may be busy with.
        encoding = time.monotonic()
        for _ in calls:
            json.dumps(argument).encode()
        assert worst < time.monotonic() - encoding + 1
        assert "next" == await door("faulty.echo", nonce="next")


async def slowest_turn(done: Any) -> float:
    """Return the longest time that the event loop did not come round before *done*."""
    worst, before = 0.0, time.monotonic()
    while not done():
        await asyncio.sleep(0.001)
        now = time.monotonic()
        worst, before = max(worst, now - before), now
    return worst


@fault("W19")
async def test_a_worker_that_ends_at_its_start_again_and_again_leaves_no_zombie(tmp_path: Path, fault: Fault) -> None:
    door = Door(tmp_path, [extension("early", "import os\nos._exit(3)\ndef f(): ...\n")])
    before, children_before = open_files(), children_of(os.getpid())
    try:
        for _ in range(100):
            with pytest.raises(ToolUnavailable, match="exit code 3"):
                await door("early.f")
        await door.pool._settle()
        assert {*zombies_of(os.getpid())} <= {*children_before}
        assert open_files() - before <= 2
    finally:
        await door.aclose()


CALLS = ("pipe", "Popen")


def open_beside_spool() -> int:
    """Return how many descriptors lead elsewhere than to the server's spool, which its first start opens for good."""
    found = [path for fd in os.listdir("/proc/self/fd") if (path := Path(f"/proc/self/fd/{fd}")).exists()]  # noqa: PTH208
    return sum("/spool/" not in str(path.readlink()) for path in found)


@fault("W50")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EAGAIN])
async def test_a_system_that_refuses_at_any_step_of_a_start_is_told_by_type(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    door = Door(tmp_path)
    files, processes = open_beside_spool(), below_this()
    steps = 0
    try:
        for step in range(1, 20):
            with monkeypatch.context() as patch:
                counts: Counter[str] = Counter()
                fail_at(patch, step, number, counts)
                try:
                    await door("calm.echo", nonce="x")
                    break
                except ToolUnavailable as error:
                    assert "cannot be" in str(error)
                    steps += 1
            # What another test has left may end meanwhile, and a guard goes a moment after it has failed.
            await until(lambda: open_beside_spool() <= files and below_this() <= processes)
        assert steps >= 2
        assert "x" == await door("calm.echo", nonce="x")
    finally:
        await door.aclose()


def fail_at(patch: pytest.MonkeyPatch, step: int, number: int, counts: Counter[str]) -> None:
    """Let the *step*-th of the system calls that start a process fail."""

    def counted(real: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            counts["all"] += 1
            if counts["all"] == step:
                raise OSError(number, os.strerror(number))
            return real(*args, **options)

        return call

    patch.setattr(guard_pipes.os, "pipe", counted(os.pipe))
    patch.setattr(guard_pipes.subprocess, "Popen", counted(subprocess.Popen))


@fault("W32")
def test_a_server_with_few_descriptors_lets_go_of_idle_workers(tmp_path: Path, fault: Fault) -> None:
    packs = {f"p{number}": "def f(*, x: int) -> int:\n    return x\n" for number in range(50)}
    place = WorkerPlace.furnish(
        tmp_path,
        CONFIG.replace("call_seconds: 2", "call_seconds: 10").replace("run_seconds: 2", "run_seconds: 20"),
        packs,
    )
    command = ["/bin/sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", *WORKER_SERVER]
    with WireServer.start(command, cwd=place.cwd, env=place.environment()) as wire:
        for number in range(50):
            reply = wire.run(f"p{number}.f(x={number})")
            assert not reply.is_error, (number, reply.text, wire.fds())
            assert f"{number}" == reply.text
        assert len(wire.fds()) <= 64
        assert [] == wire.stdout_junk
        with within(1):
            wire.ping()


async def test_a_worker_whose_pack_is_broken_at_import_is_not_tried_again_and_again(tmp_path: Path) -> None:
    door = Door(tmp_path, [extension("broken", "import nothing_like_this\ndef f(): ...\n")], deaths=DEATHS)
    try:
        texts = set[str]()
        for _ in range(8):
            with pytest.raises((ToolUnavailable, ToolBusy)) as raised:
                await door("broken.f")
            texts.add(type(raised.value).__name__)
            assert "nothing_like_this" in str(raised.value)
        assert {"ToolUnavailable", "ToolBusy"} == texts
    finally:
        await door.aclose()


def sleep(server: WatchedWorkers, seconds: float) -> int:
    """Begin a run that only sleeps, as a control for what should be over sooner, and return its number."""
    return server.wire.send_run(f"import time\ntime.sleep({seconds})")


@fault("W01")
def test_a_worker_killed_in_a_call_is_an_error_at_once_and_the_next_call_has_another(
    server: WatchedWorkers, fault: Fault
) -> None:
    def kill() -> bool:
        control = sleep(server, 0.25)
        dead = server.wire.run("faulty.kill()")
        assert dead.is_error and "died during the call" in dead.text and "SIGKILL" in dead.text
        is_told_at_once = dead.at < server.wire.wait(control).at
        control = sleep(server, 1)
        again = server.wire.run("faulty.echo(nonce='again')")
        assert "again" == again.text
        return is_told_at_once and again.at < server.wire.wait(control).at

    # What a busy machine adds is not there each time.
    assert any(server.survive(kill) for _ in range(ATTEMPTS))


@fault("W02")
def test_a_worker_killed_while_idle_costs_no_call(server: WatchedWorkers, fault: Fault) -> None:
    before = server.worker_pid("faulty")

    def kill() -> None:
        os.kill(before, signal.SIGKILL)
        assert_gone([before])
        assert "next" == server.wire.run("faulty.echo(nonce='next')").text

    server.survive(kill)
    after = server.worker_pid("faulty")
    assert before != after
    assert after == server.worker_pid("faulty")


@fault("W07")
def test_half_a_reply_and_the_end_is_a_death(server: WatchedWorkers, fault: Fault) -> None:
    half = b'{"result": "ha'.hex()
    reply = server.run(f"faulty.on_wire(hex='{half}', value='', end=True)")
    assert reply.is_error and "exit code 1" in reply.text


@fault("W28")
def test_a_stopped_worker_is_killed_at_the_deadline(server: WatchedWorkers, fault: Fault) -> None:
    worker = server.worker_pid("faulty")

    def stop() -> None:
        number = server.wire.send_run("faulty.wait(seconds=30)")
        server.wire.run("calm.echo(nonce='begun')")
        os.kill(worker, signal.SIGSTOP)
        reply = server.wire.wait(number)
        assert reply.is_error
        assert_gone([worker])

    server.survive(stop)


@fault("W33")
def test_a_worker_that_closes_its_wire_is_replaced(server: WatchedWorkers, fault: Fault) -> None:
    worker = server.worker_pid("faulty")
    reply = server.wire.run("faulty.close_wire()")
    assert reply.is_error and "died during the call" in reply.text
    assert_gone([worker])
    server.survive(lambda: None)


@fault("W34")
def test_a_crash_in_c_names_its_signal(server: WatchedWorkers, fault: Fault) -> None:
    assert "SIGSEGV" in server.run("faulty.segfault()").text


@fault("W35")
@pytest.mark.parametrize(
    ("how", "words"),
    [("sys.exit", "SystemExit"), ("KeyboardInterrupt", "KeyboardInterrupt"), ("os._exit", "exit code 0")],
)
def test_a_tool_that_leaves_is_an_error_and_not_silence(
    server: WatchedWorkers, how: str, words: str, fault: Fault
) -> None:
    reply = server.run(f"faulty.leave(how='{how}')")
    assert reply.is_error and words in reply.text


@fault("W30")
def test_a_tool_that_forks_on_and_on_is_ended_by_the_guards_own_count(server: WatchedWorkers, fault: Fault) -> None:
    """Root is not held to RLIMIT_NPROC, and no pids controller is used: the limit that holds is the guard's 64."""
    worker = server.worker_pid("faulty")

    def bomb() -> None:
        reply = server.wire.run("faulty.fork_many(count=400)")
        assert reply.is_error and "more than 64 processes" in reply.text
        assert process_stat(worker) is None

    server.survive(bomb)


@fault("W31")
def test_a_worker_without_descriptors_is_replaced(server: WatchedWorkers, fault: Fault) -> None:
    before = server.worker_pid("faulty")
    reply = server.run("faulty.lose_files()")
    assert reply.is_error and "Too many open files" in reply.text
    assert before != server.worker_pid("faulty")


@fault("W20", "W21", "W22")
@pytest.mark.parametrize("kind", ["plain", "setsid", "daemon"])
def test_a_worker_that_dies_takes_its_children_along(server: WatchedWorkers, kind: str, fault: Fault) -> None:
    child = int(server.wire.run(f"faulty.child(kind='{kind}')").text)
    assert process_stat(child)
    assert server.run("faulty.kill()").is_error
    assert_gone([child])


@fault("W20", "W21", "W22")
@pytest.mark.parametrize("kind", ["plain", "setsid", "daemon"])
def test_a_call_that_runs_out_of_time_leaves_no_child(server: WatchedWorkers, kind: str, fault: Fault) -> None:
    assert server.run(f"faulty.child(kind='{kind}', seconds=100)").is_error
    assert_gone(pid for pid in server.wire.children() if "time.sleep(300)" in command(pid))
