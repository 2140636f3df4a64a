"""However a server ends, it ends soon and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.watched import SERVER, Place, start_wire
from mcp_wire import WireServer, process_stat
from pace import wait_while, within
from workers.process_watch import assert_gone

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
    for child in Path(f"/proc/{wire.pid}/task").glob("*/children"):
        for pid in map(int, child.read_text().split()):
            if process_stat(pid) and b"onetool-watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
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
        assert wire.ping() < 1
