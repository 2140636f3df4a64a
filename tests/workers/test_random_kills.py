"""Workers and servers killed at any moment: nothing is left, and no answer is wrong."""

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
from mcp_wire import ServerGone, WireReply, WireServer
from pace import PATIENCE, patiently, within
from proxied.desk import fake
from server_process import process_tree
from workers.corpus_faults import Fault, fault
from workers.door import source_of
from workers.process_watch import assert_gone
from workers.watched_workers import LONG_CONFIG, ONETOOL, WorkerPlace

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
        for kind, word in (("guard", b"guard.py"), ("worker", b"bootstrap.py"), ("server", b"misbehaving_server.py")):
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> WorkerPlace:
    """Where the servers of this file live, one after the other."""
    config = LONG_CONFIG.replace("call_seconds: 60", "call_seconds: 60, drain_seconds: 1")
    return WorkerPlace.furnish(tmp_path_factory.mktemp("ending"), config)


@pytest.fixture
def ending_wire(place: WorkerPlace) -> Iterator[WireServer]:
    """A server whose tools have started children, in a session of their own and forked twice too."""
    server = start_wire(place, ONETOOL)
    yield server
    server.kill()


def with_children(ending_wire: WireServer) -> list[int]:
    """Return the server's processes, when its tools have children that try to live on."""
    kept = [int(ending_wire.run(f"faulty.child(kind='{kind}')").text) for kind in ("plain", "setsid", "daemon")]
    found = {*ending_wire.children(), *kept}
    assert len(found) >= 5
    return sorted(found)


def begin_call(ending_wire: WireServer) -> int:
    """Begin a call that takes long, and return its number when it runs."""
    number = ending_wire.send_run("faulty.wait(seconds=50)")
    ending_wire.run("faulty.echo(nonce='it runs')")
    return number


@fault("W23")
def test_a_server_killed_while_idle_leaves_nothing(ending_wire: WireServer, fault: Fault) -> None:
    processes = with_children(ending_wire)
    os.kill(ending_wire.pid, signal.SIGKILL)
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
def test_a_server_asked_to_end_in_a_call_answers_it_and_leaves_nothing(ending_wire: WireServer, fault: Fault) -> None:
    processes = with_children(ending_wire)
    number = begin_call(ending_wire)
    os.kill(ending_wire.pid, signal.SIGTERM)
    with within(5):
        reply = ending_wire.wait(number)
        assert reply.is_error
        assert 0 == ending_wire.close()
    assert_gone(processes)
    assert [] == ending_wire.stdout_junk


@fault("W26")
def test_the_end_of_input_in_a_call_ends_the_server_soon(ending_wire: WireServer, fault: Fault) -> None:
    processes = with_children(ending_wire)
    begin_call(ending_wire)
    with within(5):
        ending_wire.close_stdin()
        assert 0 == ending_wire.close()
    assert_gone(processes)


@fault("W27")
def test_a_second_interrupt_forces_the_end(tmp_path: Path, fault: Fault) -> None:
    patient = LONG_CONFIG.replace("call_seconds: 60", "call_seconds: 60, drain_seconds: 50")
    ending_wire = start_wire(WorkerPlace.furnish(tmp_path, patient), ONETOOL)
    try:
        processes = with_children(ending_wire)
        number = begin_call(ending_wire)
        os.kill(ending_wire.pid, signal.SIGINT)
        # Between the two there is a moment in which the server has begun to end.
        with pytest.raises((TimeoutError, ServerGone)):
            ending_wire.wait(-number, 0.05)
        with within(1):
            os.kill(ending_wire.pid, signal.SIGINT)
            ending_wire.wait_for_end(PATIENCE)
        assert_gone(processes)
    finally:
        ending_wire.kill()


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


def test_a_call_that_was_answered_is_not_answered_again_when_the_server_ends(ending_wire: WireServer) -> None:
    assert "x" == ending_wire.run("calm.echo(nonce='x')").text
    assert 0 == ending_wire.close()
    assert [1] * len(ending_wire.answers) == [len(answers) for answers in ending_wire.answers.values()]


def test_the_spool_of_a_server_that_ended_is_empty(ending_wire: WireServer, place: WorkerPlace) -> None:
    assert "x" == ending_wire.run("calm.echo(nonce='x')").text
    spool = Path(place.home / ".onetool" / "spool")
    before = set(spool.iterdir())
    assert before
    assert 0 == ending_wire.close()
    assert len(set(spool.iterdir())) < len(before)
