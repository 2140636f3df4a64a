"""Children of the exact engine that are killed at any moment, while runs go on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from faults.watched import Place, start_wire
from mcp_wire import WireReply, WireServer, process_tree

CONFIG = "logs: {level: ERROR}\nengines: {use: exact}\n"
FLIGHT = 8
PAUSE_SECONDS = 0.01
CAUSES = ("killed by SIGKILL", "its zygote died")


@dataclass
class Killer:
    """Kills children of the zygote one after the other, ready or at work, and the zygote itself once in a while."""

    server: int
    kills: int
    zygote_every: int = 0
    killed: list[int] = field(default_factory=list[int])
    over: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Kill until it is enough."""
        choice = random.Random(7)
        while len(self.killed) < self.kills and not self.over.wait(PAUSE_SECONDS):
            zygote, children = engine_processes(self.server)
            at_zygote = self.zygote_every and len(self.killed) % self.zygote_every == self.zygote_every - 1
            if zygote and (children or at_zygote):
                pid = zygote if at_zygote else choice.choice(children)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue  # its run was over
                self.killed.append(pid)
        self.over.set()


def engine_processes(server: int) -> tuple[int, list[int]]:
    """Return the zygote and its children."""
    tree = process_tree(server)
    forked = {stat.pid: stat.parent for stat in tree if _is_forked(stat.pid)}
    zygote = next((pid for pid, parent in forked.items() if parent not in forked), 0)
    return zygote, [pid for pid in forked if pid != zygote]


def _is_forked(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # The shell and bubblewrap, which may stand before it, have it among their own arguments.
    return b"python" in command.split(b"\0")[0] and b"jail.zygote" in command


@contextmanager
def killing(server: int, kills: int, zygote_every: int) -> Generator[Killer]:
    killer = Killer(server, kills, zygote_every)
    thread = threading.Thread(target=killer.work)
    thread.start()
    try:
        yield killer
    finally:
        killer.over.set()
        thread.join()


def flight(wire: WireServer, name: str) -> list[tuple[str, WireReply, float]]:
    """Return what was to come, what came, and after how long, of a few runs at a time."""
    programs = {f"{name}-{n}": f"'{name}-{n}'" for n in range(FLIGHT - 2)}
    programs |= {f"{name}-w{n}": f"slow.wait(seconds=0.02, nonce='{name}-w{n}')" for n in range(2)}
    begun = time.monotonic()
    sent = [(text, wire.send_run(program)) for text, program in programs.items()]
    replies = [(text, wire.wait(number, 60)) for text, number in sent]
    return [(text, reply, reply.at - begun) for text, reply in replies]


def runs_among(wire: WireServer, kills: int, zygote_every: int = 0) -> None:
    slowest = max(seconds for n in range(10) for _, _, seconds in flight(wire, f"control{n}"))
    failed = 0
    with killing(wire.pid, kills, zygote_every) as killer:
        round = 0
        while not killer.over.is_set():
            round += 1
            for text, reply, seconds in flight(wire, f"round{round}"):
                assert seconds < slowest + 1
                assert reply.text == text or (reply.meta["error"] == "EngineCrashed" and names_cause(reply)), reply.text
                failed += reply.is_error
    zygotes = kills // zygote_every if zygote_every else 0
    assert len(killer.killed) == kills
    assert failed <= kills + zygotes * FLIGHT
    assert [reply.text for _, reply, _ in flight(wire, "after")] == [text for text, _, _ in flight(wire, "after")]


def names_cause(reply: WireReply) -> bool:
    return any(cause in reply.text for cause in CAUSES)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[WireServer]:
    with start_wire(Place.make(tmp_path, CONFIG)) as started:
        yield started


def test_runs_among_killed_children_are_right_or_name_the_cause_and_none_is_late(wire: WireServer) -> None:
    runs_among(wire, kills=60, zygote_every=25)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_two_thousand_killed_children_hang_no_run(wire: WireServer) -> None:
    runs_among(wire, kills=2000)
