"""A server that is asked to end lets open runs finish, begins no others, and keeps what it counted."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cli.command import interruptible
from faults.watched import SERVER, Place, start_wire
from mcp_wire import WireServer
from pace import wait_while, within
from server_process import process_stat, process_tree
from workers.process_watch import assert_gone, command

ENDS: dict[str, Callable[[WireServer], None]] = {
    "end of input": lambda wire: wire.close_stdin(),
    "SIGTERM": lambda wire: os.kill(wire.pid, signal.SIGTERM),
    "SIGINT": lambda wire: os.kill(wire.pid, signal.SIGINT),
}
WORK = {
    "idle": "1",
    "in a tool": "slow.wait(seconds=100)",
    "in a thread": "slow.block(seconds=100)",
    "computing": "while True: pass",
}
LONG = "limits: {run_seconds: 100, cpu_seconds: 100, call_seconds: 100}\nsnippets: {hello: {body: '1'}}\n"


def started(place: Place, program: str) -> tuple[WireServer, tuple[int, ...]]:
    """Return a server that has begun with *program*, and the processes that it has started."""
    wire = start_wire(place)
    wire.run("$hello")
    wire.send_run(program)
    wire.run("slow.wait(seconds=0.2)")
    return wire, wire.children()


@pytest.mark.parametrize(
    ("way", "work"),
    [
        ("end of input", "idle"),
        ("end of input", "in a tool"),
        ("end of input", "in a thread"),
        ("SIGTERM", "in a tool"),
        ("SIGTERM", "computing"),
        ("SIGINT", "in a thread"),
    ],
)
def test_a_server_that_is_asked_to_end_does_within_five_seconds(way: str, work: str, tmp_path: Path) -> None:
    wire, processes = started(Place.make(tmp_path, LONG), WORK[work])
    assert processes
    with within(5):
        ENDS[way](wire)
        code = wire.close()
    assert 0 == code
    assert_gone(processes)
    assert [] == wire.stdout_junk
    assert "Traceback" not in wire.stderr_text()


@pytest.mark.parametrize("work", ["in a tool", "computing"])
def test_a_server_that_is_killed_leaves_no_process_behind(work: str, tmp_path: Path) -> None:
    wire, processes = started(Place.make(tmp_path, LONG), WORK[work])
    try:
        os.kill(wire.pid, signal.SIGKILL)
        assert_gone(processes)
    finally:
        wire.kill()


def test_a_watchdog_that_is_killed_is_started_again_and_still_watches(tmp_path: Path) -> None:
    wire, _ = started(Place.make(tmp_path, LONG), WORK["computing"])
    try:
        first = watchdog_of(wire)
        os.kill(first, signal.SIGKILL)
        wait_while(lambda: watchdog_of(wire) in (0, first))
        second = watchdog_of(wire)
        processes = wire.children()
        os.kill(wire.pid, signal.SIGKILL)
        assert_gone(processes)
    finally:
        wire.kill()
    assert not process_stat(second)


def watchdog_of(wire: WireServer) -> int:
    """Return the process that watches the server, or 0."""
    for stat in process_tree(wire.pid):
        if stat.parent == wire.pid and "onetool-watchdog" in command(stat.pid):
            return stat.pid
    return 0


def test_requests_in_a_file_are_answered_and_the_server_ends(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    requests = tmp_path / "requests"
    requests.write_text(
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"file","version":"1"}}}\n'
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    with requests.open("rb") as stdin:
        done = subprocess.run(
            SERVER, stdin=stdin, capture_output=True, timeout=20, cwd=place.cwd, env=place.environment(), check=True
        )
    assert b'"id":1' in done.stdout
    assert 1 == done.stdout.count(b"\n")


def test_the_command_serves_as_the_test_server_does(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("onetool")
    with start_wire(Place.make(tmp_path), [str(command), "serve"]) as wire:
        assert "2" == wire.run("1 + 1").text
        with within(1):
            wire.ping()


CONFIG = "engines: {use: portable}\nlogs: {level: INFO}\nlimits: {drain_seconds: %s}\n"
ASKED = "asked to end"


@contextmanager
def serving(root: Path, drain_seconds: float, argv: list[str] | None = None) -> Generator[WireServer]:
    with start_wire(Place.make(root, CONFIG % drain_seconds), interruptible(argv or SERVER)) as wire:
        wire.run("1")
        yield wire


def ask_to_end(wire: WireServer, number: int) -> None:
    os.kill(wire.pid, number)
    wire.wait_for_stderr(ASKED)


def begun(wire: WireServer, program: str) -> int:
    """Return the number of a run that has come to its first call."""
    number = wire.send_run(f"slow.wait(seconds=0.01)\n{program}")
    wire.run("slow.wait(seconds=0.2)")
    return number


def exit_code(wire: WireServer) -> int:
    return wire.wait_for_end(20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_open_run_gets_its_time_a_new_one_is_refused_and_what_was_counted_is_kept(
    number: int, tmp_path: Path
) -> None:
    with serving(tmp_path, 30) as wire:
        open_run = begun(wire, "slow.wait(seconds=1.5, nonce='done')")
        ask_to_end(wire, number)
        late = wire.run("'late'")
        assert (late.is_error, late.meta["error"]) == (True, "ServerEnding")
        assert "nothing has run" in late.text
        assert wire.wait(open_run).text == "done"
        assert exit_code(wire) == 0
        assert "Traceback" not in wire.stderr_text()
    with closing(sqlite3.connect(tmp_path / "home" / ".onetool" / "stats" / "stats.db")) as rows:
        assert rows.execute("select count(*) from runs").fetchone() == (3,)


def test_a_run_that_is_not_over_in_time_ends_as_a_tool_error_that_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, 0.2) as wire:
        runs = [begun(wire, program) for program in ("slow.wait(seconds=60)", "while True: pass")]
        ask_to_end(wire, signal.SIGTERM)
        for number in runs:
            reply = wire.wait(number)
            assert (reply.is_error, reply.meta["error"]) == (True, "ServerEnding")
            assert "limits.drain_seconds (0.2 s)" in reply.text
        assert exit_code(wire) == 0
        assert wire.stdout_junk == []


def test_a_server_that_is_asked_twice_ends_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, 600) as wire:
        begun(wire, "slow.wait(seconds=60)")
        ask_to_end(wire, signal.SIGTERM)
        os.kill(wire.pid, signal.SIGTERM)
        assert exit_code(wire) == 0


def test_a_server_under_nohup_outlives_a_hangup(tmp_path: Path) -> None:
    with serving(tmp_path, 5, ["nohup", *SERVER]) as wire:
        os.kill(wire.pid, signal.SIGHUP)
        assert wire.run("1 + 1").text == "2"
        with pytest.raises(subprocess.TimeoutExpired):
            wire.wait_for_end(0.2)
