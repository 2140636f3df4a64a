"""Workers that die, or nearly do, in the middle of calls; the server is watched from outside."""

from __future__ import annotations

import os
import signal

import pytest

from mcp_wire import process_stat
from workers.corpus_faults import Fault, fault
from workers.process_watch import assert_gone, command
from workers.watched_workers import WatchedWorkers


def sleep(server: WatchedWorkers, seconds: float) -> int:
    """Begin a run that only sleeps, as a control for what should be over sooner, and return its number."""
    return server.wire.send_run(f"import time\ntime.sleep({seconds})")


@fault("W01")
def test_a_worker_killed_in_a_call_is_an_error_at_once_and_the_next_call_has_another(
    server: WatchedWorkers, fault: Fault
) -> None:
    def kill() -> None:
        control = sleep(server, 0.25)
        dead = server.wire.run("faulty.kill()")
        assert dead.is_error and "died during the call" in dead.text and "SIGKILL" in dead.text
        assert dead.at < server.wire.wait(control).at
        control = sleep(server, 1)
        again = server.wire.run("faulty.echo(nonce='again')")
        assert "again" == again.text
        assert again.at < server.wire.wait(control).at

    server.survive(kill)


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
