"""Processes of every kind that are killed at any moment, while runs go on."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from faults.watched import start_wire
from mcp_wire import WireReply, WireServer, process_tree
from pace import PATIENCE
from servers.desk import fake
from workers.door import source_of
from workers.watched_workers import ONETOOL, WorkerPlace

CONFIG = {
    "logs": {"level": "ERROR"},
    "engines": {"use": "exact"},
    "servers": {"fake": fake()},
    "policy": {"allow": ["fake.*"]},
}
PROGRAMS = ("'{0}'", "'{0}'", "'{0}'", "'{0}'", "calm.aecho(nonce='{0}', seconds=0.02)", "calm.echo(nonce='{0}')",
            "fake.sleep(seconds=0.02) and '{0}'", "fake.echo(text='{0}')")  # fmt: skip
PAUSE_SECONDS = 0.01
ZYGOTE_PAUSE = 25.0
"""Between kills of the zygote: an engine whose zygote dies five times in a minute refuses to go on, rightly."""
LATE_SECONDS = 1.0
"""By how much an answer may be later than the latest control, which starts every process anew, too."""
ORDER = ("child", "child", "worker", "child", "child", "guard", "child", "child", "server", "child") * 2 + ("zygote",)
CAUSES = ("SIGKILL", "its zygote died", "died during the call", "did not start", "the server 'fake' is not available")


@dataclass
class Killer:
    """Kills one process after the other, ready or at work: mostly children of the zygote, and others in turn."""

    server: int
    kills: int
    killed: list[int] = field(default_factory=list[int])
    over: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Kill until it is enough."""
        choice, kinds = random.Random(7), cycle(ORDER)
        kind, again = next(kinds), 0.0
        while len(self.killed) < self.kills and not self.over.wait(PAUSE_SECONDS):
            if kind == "zygote" and time.monotonic() < again:
                kind = next(kinds)
            found = processes(self.server)
            if victim := kill(choice.choice(found.get(kind) or [0])):
                self.killed.append(victim)
                again = time.monotonic() + ZYGOTE_PAUSE if kind == "zygote" else again
                kind = next(kinds)
            elif kind != "child":
                kind = next(kinds)  # it comes back when its pause is over
        self.over.set()


def kill(pid: int) -> int:
    """Kill a process and return its number, or 0 when there is none."""
    with suppress(ProcessLookupError):  # its run was over
        if pid:
            os.kill(pid, signal.SIGKILL)
            return pid
    return 0


def processes(server: int) -> dict[str, list[int]]:
    """Return the processes below *server* by kind."""
    found: dict[str, list[int]] = {}
    forked = {stat.pid: stat.parent for stat in process_tree(server) if _is_forked(stat.pid)}
    for pid, parent in forked.items():
        found.setdefault("child" if parent in forked else "zygote", []).append(pid)
    for stat in process_tree(server):
        words = _command(stat.pid)
        for kind, word in (("guard", b"guard.py"), ("worker", b"bootstrap.py"), ("server", b"fake_server.py")):
            if any(argument.endswith(word) for argument in words):
                found.setdefault(kind, []).append(stat.pid)
                break  # a guard has the command that it guards among its own arguments
    return found


def _command(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _is_forked(pid: int) -> bool:
    words = _command(pid)
    # The shell and bubblewrap, which may stand before it, have it among their own arguments.
    return bool(words) and b"python" in words[0] and any(b"jail.zygote" in word for word in words)


@contextmanager
def killing(server: int, kills: int) -> Generator[Killer]:
    killer = Killer(server, kills)
    thread = threading.Thread(target=killer.work)
    thread.start()
    try:
        yield killer
    finally:
        killer.over.set()
        thread.join()


def flight(wire: WireServer, name: str) -> list[tuple[str, WireReply, float]]:
    """Return what was to come, what came, and after how long, of a few runs at a time."""
    begun = time.monotonic()
    texts = [f"{name}-{n}" for n in range(len(PROGRAMS))]
    sent = [(text, wire.send_run(program.format(text))) for text, program in zip(texts, PROGRAMS, strict=True)]
    replies = [(text, wire.wait(number, 60)) for text, number in sent]
    return [(text, reply, reply.at - begun) for text, reply in replies]


def latest_control(wire: WireServer, name: str) -> float:
    """Return after how long the latest answer comes when every process was killed before, and when none was."""
    for pid in [pid for kind in processes(wire.pid).values() for pid in kind]:
        kill(pid)
    flights = [flight(wire, f"{name}{n}") for n in range(10)]
    end = time.monotonic() + PATIENCE
    while any(reply.text != text for text, reply, _ in flights[-1]):
        assert time.monotonic() < end, [reply.text for _, reply, _ in flights[-1]]
        flights.append(flight(wire, f"{name}{len(flights)}"))
    return max(seconds for answers in flights for _, _, seconds in answers)


def runs_among(wire: WireServer, kills: int) -> None:
    control, latest, right, round = latest_control(wire, "before"), 0.0, 0, 0
    with killing(wire.pid, kills) as killer:
        while not killer.over.is_set():
            round += 1
            for text, reply, seconds in flight(wire, f"round{round}"):
                assert reply.text == text or names_cause(reply), reply.text
                latest, right = max(latest, seconds), right + (reply.text == text)
    assert len(killer.killed) == kills
    assert right > round  # most of what a kill does not strike is answered
    assert latest < max(control, latest_control(wire, "after")) + LATE_SECONDS


def names_cause(reply: WireReply) -> bool:
    return reply.is_error and any(cause in reply.text for cause in CAUSES)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[WireServer]:
    with start_wire(WorkerPlace.furnish(tmp_path, json.dumps(CONFIG), {"calm": source_of("calm")}), ONETOOL) as started:
        yield started


def test_among_a_hundred_kills_of_every_kind_no_answer_is_wrong_lost_or_late(wire: WireServer) -> None:
    runs_among(wire, 100)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_among_two_thousand_kills_of_every_kind_no_answer_is_wrong_lost_or_late(wire: WireServer) -> None:
    runs_among(wire, 2000)
