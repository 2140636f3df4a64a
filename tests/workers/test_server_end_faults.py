"""However a server ends, nothing that its tools have started is left: the real ``onetool serve``."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.watched import start_wire
from mcp_wire import ServerGone, WireServer
from pace import PATIENCE, patiently, within
from workers.corpus_faults import Fault, fault
from workers.process_watch import assert_gone
from workers.watched_workers import LONG_CONFIG, ONETOOL, WorkerPlace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> WorkerPlace:
    """Where the servers of this file live, one after the other."""
    config = LONG_CONFIG.replace("call_seconds: 60", "call_seconds: 60, drain_seconds: 1")
    return WorkerPlace.furnish(tmp_path_factory.mktemp("ending"), config)


@pytest.fixture
def wire(place: WorkerPlace) -> Iterator[WireServer]:
    """A server whose tools have started children, in a session of their own and forked twice too."""
    server = start_wire(place, ONETOOL)
    yield server
    server.kill()


def with_children(wire: WireServer) -> list[int]:
    """Return the server's processes, when its tools have children that try to live on."""
    kept = [int(wire.run(f"faulty.child(kind='{kind}')").text) for kind in ("plain", "setsid", "daemon")]
    found = {*wire.children(), *kept}
    assert len(found) >= 5
    return sorted(found)


def begin_call(wire: WireServer) -> int:
    """Begin a call that takes long, and return its number when it runs."""
    number = wire.send_run("faulty.wait(seconds=50)")
    wire.run("faulty.echo(nonce='it runs')")
    return number


@fault("W23")
def test_a_server_killed_while_idle_leaves_nothing(wire: WireServer, fault: Fault) -> None:
    processes = with_children(wire)
    os.kill(wire.pid, signal.SIGKILL)
    assert_gone(processes)


@fault("W24", repetitions=1)
def test_a_server_killed_in_a_call_leaves_nothing(place: WorkerPlace, fault: Fault) -> None:
    for _ in range(5):
        killed_in_a_call(place)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_server_killed_in_a_call_leaves_nothing_thirty_times(place: WorkerPlace) -> None:
    for _ in range(30):
        killed_in_a_call(place)


def killed_in_a_call(place: WorkerPlace) -> None:
    """Kill a server in a call, and return when nothing is left of it."""
    server = start_wire(place, ONETOOL)
    try:
        begin_call(server)
        processes = with_children(server)
        os.kill(server.pid, signal.SIGKILL)
        assert_gone(processes)
    finally:
        server.kill()


@fault("W25")
def test_a_server_asked_to_end_in_a_call_answers_it_and_leaves_nothing(wire: WireServer, fault: Fault) -> None:
    processes = with_children(wire)
    number = begin_call(wire)
    os.kill(wire.pid, signal.SIGTERM)
    with within(5):
        reply = wire.wait(number)
        assert reply.is_error
        assert 0 == wire.close()
    assert_gone(processes)
    assert [] == wire.stdout_junk


@fault("W26")
def test_the_end_of_input_in_a_call_ends_the_server_soon(wire: WireServer, fault: Fault) -> None:
    processes = with_children(wire)
    begin_call(wire)
    with within(5):
        wire.close_stdin()
        assert 0 == wire.close()
    assert_gone(processes)


@fault("W27")
def test_a_second_interrupt_forces_the_end(tmp_path: Path, fault: Fault) -> None:
    patient = LONG_CONFIG.replace("call_seconds: 60", "call_seconds: 60, drain_seconds: 50")
    wire = start_wire(WorkerPlace.furnish(tmp_path, patient), ONETOOL)
    try:
        processes = with_children(wire)
        number = begin_call(wire)
        os.kill(wire.pid, signal.SIGINT)
        # Between the two there is a moment in which the server has begun to end.
        with pytest.raises((TimeoutError, ServerGone)):
            wire.wait(-number, 0.05)
        with within(1):
            os.kill(wire.pid, signal.SIGINT)
            wire._process.wait(PATIENCE)
        assert_gone(processes)
    finally:
        wire.kill()


def killed_while_starting(place: WorkerPlace, after: float) -> None:
    """Kill a server so many seconds after it was told to start a worker."""
    server = start_wire(place, ONETOOL)
    try:
        server.send_run("calm.echo(nonce='x')")
        seen: set[int] = set()
        for _ in patiently(after):
            seen.update(server.children())
        os.kill(server.pid, signal.SIGKILL)
        assert_gone(seen | set(server.children()))
        assert () == server.children()
    finally:
        server.kill()


@fault("W49", repetitions=1)
def test_a_server_killed_while_it_starts_a_worker_leaves_nothing(place: WorkerPlace, fault: Fault) -> None:
    chance = random.Random(49)
    for _ in range(8):
        killed_while_starting(place, chance.uniform(0.0, 0.15))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_server_killed_while_it_starts_a_worker_leaves_nothing_two_hundred_times(place: WorkerPlace) -> None:
    chance = random.Random(490)
    for _ in range(200):
        killed_while_starting(place, chance.uniform(0.0, 0.15))


def test_a_call_that_was_answered_is_not_answered_again_when_the_server_ends(wire: WireServer) -> None:
    assert "x" == wire.run("calm.echo(nonce='x')").text
    assert 0 == wire.close()
    assert [1] * len(wire.answers) == [len(answers) for answers in wire.answers.values()]


def test_the_spool_of_a_server_that_ended_is_empty(wire: WireServer, place: WorkerPlace) -> None:
    assert "x" == wire.run("calm.echo(nonce='x')").text
    spool = Path(place.home / ".onetool" / "spool")
    before = set(spool.iterdir())
    assert before
    assert 0 == wire.close()
    assert len(set(spool.iterdir())) < len(before)
