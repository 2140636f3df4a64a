"""Faults of the area ``run`` that strike the sandbox processes, or want more of them than there are."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.faults_corpus import fault
from faults.sandbox_process import RENDERER, SANDBOX, busy_process, kill_all
from faults.watched import CONFIG, SHIPPED, Place, Watched, peak_mb, start_wire

Fault = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server whose limits end no run before a busy machine lets a test kill its sandbox."""
    config = CONFIG.replace("run_seconds: 2, call_seconds: 2, cpu_seconds: 2", "run_seconds: 10, cpu_seconds: 10")
    assert config != CONFIG
    with Watched.started(tmp_path_factory.mktemp("patient"), config) as watched:
        yield watched


@fault("R11")
def test_a_killed_sandbox_is_an_error_at_once_and_the_pool_is_refilled(server: Watched, fault: Fault) -> None:
    def kill() -> None:
        number = server.wire.send_run("while True: pass")
        os.kill(busy_process(server), signal.SIGKILL)
        control = server.wire.send_run("slow.wait(seconds=0.25)")
        reply = server.wire.wait(number)
        assert "EngineCrashed" == reply.meta["error"]
        assert reply.at < server.wire.wait(control).at
        numbers = [server.wire.send_run(f"slow.wait(seconds=0.05, nonce='{n}')") for n in range(20)]
        assert [str(n) for n in range(20)] == [server.wire.wait(number).text for number in numbers]

    server.survive(kill)


@fault("R11")
def test_only_the_run_whose_sandbox_died_fails(server: Watched, fault: Fault) -> None:
    def kill() -> None:
        waiting = [server.wire.send_run(f"slow.wait(seconds=1, nonce='{n}')") for n in range(2)]
        doomed = server.wire.send_run("while True: pass")
        os.kill(busy_process(server), signal.SIGKILL)
        assert server.wire.wait(doomed).is_error
        assert ["0", "1"] == [server.wire.wait(number).text for number in waiting]

    server.survive(kill)


@fault("R11")
def test_sandboxes_killed_while_idle_cost_no_run(server: Watched, fault: Fault) -> None:
    kill_all(server, SANDBOX)
    replies = [server.wire.run("1 + 1").text for _ in range(4)]
    server.survive(lambda: None)
    assert ["2"] * 4 == replies


@fault("R11")
def test_a_renderer_killed_while_idle_costs_no_snippet(server: Watched, fault: Fault) -> None:
    server.wire.run("$hello name=x")
    kill_all(server, RENDERER)
    server.wire.ping()
    assert "hello you" == server.wire.run("$hello name=you").text
    server.survive(lambda: None)


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server that lets two programs run at a time, and others wait for half a second."""
    config = CONFIG.replace("processes: 4, queue_seconds: 2", "processes: 2, queue_seconds: 0.5")
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
def test_a_mixed_crowd_is_served_again_and_again(server: Watched, round: int) -> None:
    def crowd() -> None:
        programs = ["while True: pass", "1/0", "'a' * 10**11", "boom.raise_(kind='SystemExit')", f"'{round}'"]
        numbers = [server.wire.send_run(program) for program in programs]
        assert str(round) == server.wire.wait(numbers[-1]).text
        assert all(server.wire.wait(number).is_error for number in numbers[:-1])

    server.survive(crowd)
