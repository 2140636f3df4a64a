"""Faults of the server's pipes and of its pool of sandbox processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from faults.faults_corpus import fault
from faults.sandbox_process import RENDERER, SANDBOX, busy_process, kill_all
from faults.watched import ATTEMPTS, CONFIG, SERVER, SHIPPED, Place, Watched, peak_growth_mb, peak_mb, start_wire
from mcp_wire import WireReply
from pace import PATIENCE, within

Fault = dict[str, Any]
CALLS = 10_000


def call(id: str, command: str) -> bytes:
    """Return a tools/call as a line; below 4,096 bytes a pipe takes it whole or not at all."""
    params = {"name": "run", "arguments": {"command": command}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def send_until_paused(server: Watched) -> int:
    """Send calls and return how many of them the server took before it paused."""
    for n in range(CALLS):
        try:
            server.wire.send_raw(call(f"held-{n}", f"'{n}-' + 'x' * 1000"), timeout=2)
        except TimeoutError:
            return n
    return CALLS


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Watched]:
    """A server in which hundreds of runs may wait for their turn."""
    config = "engines: {exact: {queue_seconds: 60}}\nsnippets: {hello: {body: '1'}}\nlogs: {level: WARNING}\n"
    with Watched.started(tmp_path, config, crowd=70) as watched:
        yield watched


@fault("M01")
def test_a_client_that_does_not_read_is_not_asked_for_more(patient: Watched, fault: Fault) -> None:
    taken: list[int] = []
    patient.wire.hold_reading()
    growth = peak_growth_mb(patient.wire, lambda: taken.append(send_until_paused(patient)))
    assert taken[0] < CALLS, "calls are not paused"
    assert growth < 64
    patient.wire.resume_reading()
    for n in range(taken[0]):
        assert patient.wire.wait(f"held-{n}").text.startswith(f"{n}-")
    patient.survive(lambda: None)


@fault("M01")
def test_the_server_ends_with_a_client_that_never_read(fault: Fault, tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    with subprocess.Popen(
        SERVER, cwd=place.cwd, env=place.environment(), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(b"not JSON, and answered once the server has started\n")
        assert select.select([server.stdout], [], [], PATIENCE)[0]
        os.set_blocking(server.stdin.fileno(), False)
        while select.select([], [server.stdin], [], 2)[1]:  # until it takes no more
            server.stdin.write(b"not JSON, and answered\n" * 100)
        server.stdin.close()
        server.stdout.close()
        with within(5):
            assert 0 == server.wait(PATIENCE)


@fault("M02")
@pytest.mark.parametrize("command", [b"\xff\xfe", b"'\xc3'", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
def test_a_request_that_is_not_utf_8_is_refused_and_the_server_lives(
    server: Watched, fault: Fault, command: bytes
) -> None:
    def send() -> dict[str, Any]:
        seen = len(refusals(server))
        server.wire.send_raw(call("utf-8", "COMMAND").replace(b"COMMAND", command))
        server.wire.ping()
        return refusals(server)[seen].error

    assert server.survive(send)["code"] in (-32700, -32602)
    assert "utf-8" not in server.wire.answers


def refusals(server: Watched) -> list[WireReply]:
    """Return the errors that answer no request in particular."""
    return server.wire.answers.get(None, [])


@fault("M03")
def test_an_id_that_is_still_in_flight_is_refused_and_the_first_call_answered(server: Watched, fault: Fault) -> None:
    server.wire.send_raw(call("dup", "slow.wait(seconds=0.3, nonce='first')"))
    server.wire.send_raw(call("dup", "'second'"))
    server.wire.wait("dup", nth=1)
    refusal, answer = server.wire.answers.pop("dup")
    assert -32600 == refusal.error["code"]
    assert "first" == answer.text
    server.survive(lambda: None)


@fault("M03")
@pytest.mark.parametrize("id", ["text", "1", "", "\u2028", "a" * 1000])
def test_an_id_may_be_used_again_once_it_is_answered(server: Watched, fault: Fault, id: str) -> None:
    for n in range(3):
        server.wire.send_raw(call(id, f"'{n}'"))
        assert str(n) == server.wire.wait(id).text
        server.wire.answers.pop(id)
    server.survive(lambda: None)


@fault("M03")
def test_an_id_may_be_used_again_once_it_is_cancelled(server: Watched, fault: Fault) -> None:
    def again() -> None:
        server.wire.send_raw(call("again", "while True: pass"))
        server.wire.cancel("again")
        server.wire.send_raw(call("again", "'second'"))
        assert "second" == server.wire.wait("again").text
        server.wire.answers.pop("again")

    server.survive(again)


@pytest.fixture(scope="module")
def pool_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server whose limits end no run before a busy machine lets a test kill its sandbox."""
    config = CONFIG.replace("run_seconds: 2, call_seconds: 2, cpu_seconds: 2", "run_seconds: 10, cpu_seconds: 10")
    assert config != CONFIG
    with Watched.started(tmp_path_factory.mktemp("patient"), config) as watched:
        yield watched


@fault("R11")
def test_a_killed_sandbox_is_an_error_at_once_and_the_pool_is_refilled(pool_server: Watched, fault: Fault) -> None:
    def kill() -> bool:
        number = pool_server.wire.send_run("while True: pass")
        os.kill(busy_process(pool_server), signal.SIGKILL)
        control = pool_server.wire.send_run("slow.wait(seconds=0.25)")
        reply = pool_server.wire.wait(number)
        assert "EngineCrashed" == reply.meta["error"]
        is_told_at_once = reply.at < pool_server.wire.wait(control).at
        numbers = [pool_server.wire.send_run(f"slow.wait(seconds=0.05, nonce='{n}')") for n in range(20)]
        assert [str(n) for n in range(20)] == [pool_server.wire.wait(number).text for number in numbers]
        return is_told_at_once

    # What a busy machine adds is not there each time.
    assert any(pool_server.survive(kill) for _ in range(ATTEMPTS))


@fault("R11")
def test_only_the_run_whose_sandbox_died_fails(pool_server: Watched, fault: Fault) -> None:
    def kill() -> None:
        waiting = [pool_server.wire.send_run(f"slow.wait(seconds=1, nonce='{n}')") for n in range(2)]
        doomed = pool_server.wire.send_run("while True: pass")
        os.kill(busy_process(pool_server), signal.SIGKILL)
        assert pool_server.wire.wait(doomed).is_error
        assert ["0", "1"] == [pool_server.wire.wait(number).text for number in waiting]

    pool_server.survive(kill)


@fault("R11")
def test_sandboxes_killed_while_idle_cost_no_run(pool_server: Watched, fault: Fault) -> None:
    kill_all(pool_server, SANDBOX)
    replies = [pool_server.wire.run("1 + 1").text for _ in range(4)]
    pool_server.survive(lambda: None)
    assert ["2"] * 4 == replies


@fault("R11")
def test_a_renderer_killed_while_idle_costs_no_snippet(pool_server: Watched, fault: Fault) -> None:
    pool_server.wire.run("$hello name=x")
    kill_all(pool_server, RENDERER)
    pool_server.wire.ping()
    assert "hello you" == pool_server.wire.run("$hello name=you").text
    pool_server.survive(lambda: None)


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server that lets two programs run at a time, and others wait for half a second."""
    config = CONFIG.replace("processes: 4, queue_seconds: 2", "processes: 2, queue_seconds: 0.5")
    config = config.replace("run_seconds: 2, call_seconds: 2", "run_seconds: 10, call_seconds: 10")
    with Watched.started(tmp_path_factory.mktemp("small"), config) as watched:
        yield watched


@fault("R13")
def test_a_pool_full_of_sleepers_says_that_it_is_overloaded_in_time(small: Watched, fault: Fault) -> None:
    def crowd() -> None:
        sleepers = [small.wire.send_run(f"slow.wait(seconds=1.5, nonce='{n}')") for n in range(2)]
        reply = small.wire.run("1")
        assert "Overloaded" == reply.meta["error"]
        slept = [small.wire.wait(number) for number in sleepers]
        assert ["0", "1"] == [sleeper.text for sleeper in slept]
        assert reply.at < min(sleeper.at for sleeper in slept)
        assert "1" == small.wire.run("1").text

    small.survive(crowd)


def test_fifty_runs_that_wait_in_a_tool_wait_together(tmp_path: Path) -> None:
    with start_wire(Place.make(tmp_path, SHIPPED)) as wire:
        numbers = [wire.send_run(f"slow.meet(many=50, nonce='n{n}')") for n in range(50)]
        assert [f"n{n}" for n in range(50)] == [wire.wait(number).text for number in numbers]


@fault("R12")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("runs", [2_000, pytest.param(10_000, marks=pytest.mark.soak)])
def test_thousands_of_runs_at_once_are_answered_right_or_told_that_it_is_overloaded(
    shipped: Watched, fault: Fault, runs: int
) -> None:
    wire = shipped.wire
    numbers = [wire.send_run(f"'nonce-{n}'") for n in range(runs)]
    assert wire.ping(60) <= 60
    for n, number in enumerate(numbers):
        reply = wire.wait(number, 300)
        assert f"nonce-{n}" == reply.text or "Overloaded" == reply.meta["error"], reply.text
    assert peak_mb(wire) <= 1024
    shipped.survive(lambda: None)


@pytest.mark.soak
@pytest.mark.parametrize("round", range(20))
def test_a_mixed_crowd_is_served_again_and_again(pool_server: Watched, round: int) -> None:
    def crowd() -> None:
        programs = ["while True: pass", "1/0", "'a' * 10**11", "boom.raise_(kind='SystemExit')", f"'{round}'"]
        numbers = [pool_server.wire.send_run(program) for program in programs]
        assert str(round) == pool_server.wire.wait(numbers[-1]).text
        assert all(pool_server.wire.wait(number).is_error for number in numbers[:-1])

    pool_server.survive(crowd)
