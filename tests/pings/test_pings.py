"""Nothing that a program, a tool, a server or a client sends keeps a ping waiting."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_wire import WireServer
from pings.due_pings import DuePings
from pings.entries import ENTRIES, Entry

HOSTILE = Path(__file__).with_name("hostile_server.py")
MORE_SECONDS = 0.05
"""What a ping may take beyond the slowest of the control's on the same machine."""
ATTEMPTS = 3
"""What a busy machine adds is not there each time; a stall is."""


@dataclass
class Ward:
    """A server, and the slowest ping beside a program that does nothing."""

    wire: WireServer
    control: float = 0.0

    def measure_control(self) -> None:
        self.control = max(self.control, *(self.slowest(Entry("control", "1 + 1")) for _ in range(2)))

    def slowest(self, entry: Entry) -> float:
        """Return the slowest ping while *entry* is tried, in seconds."""
        with DuePings(self.wire) as pings:
            self.wire.send_raw(entry.lines)
            self.wire.run(entry.command, timeout=60)
        return pings.worst


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    home = tmp_path_factory.mktemp("pings")
    (home / ".onetool").mkdir()
    settings = {
        "engines": {"use": "exact"},
        "servers": {"hostile": {"command": sys.executable, "args": [str(HOSTILE)]}},
        "policy": {"allow": ["hostile.*"]},
    }
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    with WireServer.start(command, cwd=home, env={**os.environ, "HOME": str(home)}) as wire:
        assert wire.run("hostile.reply(kind='text', n=3)").text == "xxx"
        assert wire.run("ot.help(query='read')").text
        ward = Ward(wire)
        ward.measure_control()
        yield ward


def check(ward: Ward, entry: Entry) -> None:
    slowest = [ward.slowest(entry)]
    while min(slowest) > ward.control + MORE_SECONDS and len(slowest) < ATTEMPTS:
        ward.measure_control()
        slowest.append(ward.slowest(entry))
    if entry.name.startswith("become"):
        ward.wire.run("hostile.become(kind='plain', n=0)")
    assert min(slowest) <= ward.control + MORE_SECONDS, f"{slowest}, control {ward.control}"
    assert ward.wire.run("1 + 1").text == "2"


@pytest.mark.soak
@pytest.mark.parametrize("name", ENTRIES)
def test_a_ping_is_answered_in_time_whatever_is_sent(ward: Ward, name: str) -> None:
    check(ward, ENTRIES[name])


def test_there_are_at_least_150_entries_of_every_kind() -> None:
    assert len(ENTRIES) >= 150
    kinds = {name.partition(":")[0] for name in ENTRIES}
    assert kinds == {"frame", "command", "result", "reply", "notify", "write", "ask", "become", "client"}


def test_a_server_that_stands_still_is_found_out(ward: Ward) -> None:
    with DuePings(ward.wire) as pings:
        os.kill(ward.wire.pid, signal.SIGSTOP)
        threading.Event().wait(0.2)
        os.kill(ward.wire.pid, signal.SIGCONT)
    assert pings.worst >= 0.15
