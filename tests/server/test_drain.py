"""A server that is asked to end lets open runs finish, begins no others, and keeps what it counted."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cli.command import interruptible
from faults.watched import SERVER, Place, start_wire
from mcp_wire import WireServer

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
    return wire._process.wait(20)


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
            wire._process.wait(0.2)
