"""Watched: a real server process under fault, and what must hold of it after every one (I1 to I8 of the corpus).

The warm-up fills what the server fills once and keeps, its pool of sandbox processes and its threads, so that the
baseline is that of a server at work and whatever grows later is a leak.
"""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from bed import TESTS, Bed
from mcp_wire import WireReply, WireServer
from pace import PATIENCE, wait_while
from processes.process_marks import zombies_of
from server_process import Snapshot, process_tree
from settled import wait_until_settled

SERVER = (sys.executable, str(TESTS / "faults" / "fault_server.py"))
BARE = (sys.executable, str(TESTS.parent / "benchmarks" / "bare_server.py"))
CORPUS = TESTS / "corpus" / "bad_inputs.yaml"
CANARY = "canary-fault-4d1c9a7e"
LATE_SECONDS = 0.05
"""By how much a ping may be slower than the slowest of a server at rest, on the same machine and a moment later."""
ATTEMPTS = 3
SLACK = 2
PROCESSES = 4

CONFIG = f"""\
limits: {{run_seconds: 2, call_seconds: 2, cpu_seconds: 2}}
engines: {{use: portable, portable: {{processes: {PROCESSES}, queue_seconds: 2}}}}
aliases: {{ws: brave.search}}
snippets:
  hello: {{params: {{name: {{}}}}, body: '"hello {{{{ name }}}}"'}}
logs: {{level: WARNING}}
"""
"""The limits that the corpora are meant to run with, and a pool small enough to be full at the baseline."""
SHIPPED = "snippets: {hello: {body: '1'}}\nlogs: {level: WARNING}\n"
"""The limits that a server is shipped with."""


class PingTooSlow(AssertionError):
    """The server, or the machine, took its time over a ping."""


@dataclass(frozen=True)
class Place(Bed):
    """A bed with a secret that must never come out, and the corpus for its packs."""

    @classmethod
    def make(cls, root: Path, config: str = CONFIG) -> Self:
        """Make it below *root*, with *config* and the secret."""
        place = super().make(root, config)
        place.user_file(f"FAULTS_CANARY: {CANARY}\n", "secrets.yaml")
        return place

    def environment(self, **more: str) -> dict[str, str]:
        """Return what the server inherits: the secret, too."""
        return super().environment(FAULTS_CANARY=CANARY, FAULTS_CORPUS=str(CORPUS), **more)

    def files(self) -> set[Path]:
        """Return every file outside the directories of results, packs, statistics, log, ledger, programs and undo."""
        names = ("tmp", "packs", "stats", "logs", "ledger", "runs", "undo")
        state = {self.home / ".onetool" / name for name in names}
        found = (file for root in (self.home, self.cwd) for file in root.rglob("*") if file.is_file())
        return {file for file in found if state.isdisjoint(file.parents)}


def start_wire(place: Bed, args: Sequence[str] = SERVER, *, handshake: bool = True) -> WireServer:
    """Start a server in *place*."""
    return WireServer.start(args, cwd=place.cwd, env=place.environment(), handshake=handshake)


@dataclass
class Watched:
    """One server, its baseline, and the checks."""

    wire: WireServer
    place: Place
    crowd: int = PROCESSES
    baseline: Snapshot = field(init=False)
    _lines_seen: int = 0
    _files: set[Path] = field(default_factory=set[Path])
    _stored_seen: set[Path] = field(default_factory=set[Path])

    def __post_init__(self) -> None:
        """Warm the server up and take the baseline."""
        self._warm_up()
        wait_until_settled(self.wire)
        self.baseline = self._snapshot()
        self._files = self.place.files()

    @classmethod
    @contextmanager
    def started(cls, root: Path, config: str = CONFIG, *, crowd: int = PROCESSES) -> Generator[Self]:
        """Yield a server below *root*, warmed up by *crowd* runs at a time, and end it."""
        place = Place.make(root, config)
        with start_wire(place) as wire:
            yield cls(wire, place, crowd)

    def survive[T](self, fault: Callable[[], T]) -> T:
        """Return what *fault* returns; all invariants hold afterwards.

        A ping that is late each time is the server's fault; once may be the machine's, which is shared.
        """
        for _ in range(ATTEMPTS - 1):
            with suppress(PingTooSlow):
                return self._once(fault)
        return self._once(fault)

    def run(self, command: str, timeout: float = PATIENCE) -> WireReply:
        """Run *command* as a fault that must be survived."""
        return self.survive(lambda: self.wire.run(command, timeout=timeout))

    def _once[T](self, fault: Callable[[], T]) -> T:
        result = fault()
        self.check_ping()
        self.check()
        return result

    # ---------------------------------------------------------------- the invariants

    def check_ping(self) -> None:
        """I3, just after a fault."""
        self._compare([self.wire.ping(60)], 0)

    def _compare(self, pings: Sequence[float], among: int) -> None:
        """Compare the slowest of *pings*, but for *among* of them, with those of the server at rest."""
        slowest = sorted(pings)[-1 - among]
        if slowest > LATE_SECONDS:  # or else there is nothing to compare
            control = max(self.wire.ping(60) for _ in range(100))
            if slowest > control + LATE_SECONDS:
                raise PingTooSlow(f"a ping took {slowest * 1000:.0f} ms, of the control {control * 1000:.0f} ms")

    def check(self) -> None:
        """All others, as far as they can be seen from outside."""
        assert self.wire.alive
        self._check_own_data()
        assert [] == self.wire.stdout_junk, "I6"
        assert (set(), "I7") == (self.place.files() - self._files, "I7")
        self._check_secret()
        self._check_baseline()

    def _check_own_data(self) -> None:
        """I1 and I2: one answer a request, and its own."""
        nonce = secrets.token_hex(8)
        assert nonce == self.wire.run(f"brave.search(query='{nonce}')[0]['title'].split()[0]").text, "I2"
        assert [] == [id for id, answers in self.wire.answers.items() if id is not None and len(answers) > 1], "I1"

    def _check_secret(self) -> None:
        """I8 in all that was written since the last look; stored results are on disk."""
        lines, self._lines_seen = self.wire.lines[self._lines_seen :], len(self.wire.lines)
        assert not any(CANARY.encode() in line for line in lines), "I8: standard output"
        assert CANARY not in self.wire.stderr_text(), "I8: standard error"
        for kept in (file for name in ("stats", "logs") for file in (self.place.home / ".onetool" / name).glob("*")):
            assert CANARY.encode() not in kept.read_bytes(), "I8: statistics or the log"
        for stored in set((self.place.home / ".onetool" / "tmp").glob("*")) - self._stored_seen:
            assert CANARY.encode() not in stored.read_bytes(), "I8: a stored result"
            self._stored_seen.add(stored)

    def _check_baseline(self) -> None:
        """I5: what has leaked does not come back, however long one waits."""
        wait_while(self._grown)

    def _grown(self) -> str:
        now, before = self._snapshot(), self.baseline
        # A worker is a process and three descriptors.
        more = len(now.children) - len(before.children)
        if more > SLACK or now.threads > before.threads + SLACK or now.fds > before.fds + SLACK + 3 * max(more, 0):
            return f"I5: from {before} to {now}"
        zombies = zombies_of(self.wire.pid)
        return f"I5: zombies {zombies}" if zombies else ""

    def _snapshot(self) -> Snapshot:
        """The wire's, without threads of the sandbox's client that leave by themselves after ten idle seconds."""
        names = [_first_line(file) for file in Path(f"/proc/{self.wire.pid}/task").glob("*/comm")]
        return replace(self.wire.snapshot(), threads=sum(not name.startswith("tokio") for name in names))

    # ---------------------------------------------------------------- what faults share

    def _warm_up(self) -> None:
        slow = ["slow.wait(seconds=0.3)", "slow.block(seconds=0.3)"]
        for program in [*slow, "$hello name=x", "'x' * 100_000", "print('x' * 100_000)", "nothing.at_all()"]:
            for number in [self.wire.send_run(program) for _ in range(self.crowd)]:
                self.wire.wait(number)

    def ping_meanwhile(self, times: int = 100) -> None:
        """I3 while a fault is going on: one ping of a hundred may be late."""
        self._compare([self.wire.ping(60) for _ in range(times)], times // 100)

    def expect_files(self, files: set[Path]) -> None:
        """Take *files* for granted from now on: a fault puts them there itself."""
        self._files |= files

    def peak_growth_mb(self, fault: Callable[[], object]) -> float:
        """Return by how much the server's memory rose at most while *fault* was going on."""
        return peak_growth_mb(self.wire, fault)


def peak_growth_mb(wire: WireServer, fault: Callable[[], object]) -> float:
    """Return by how many MiB the server's memory rose at most while *fault* was going on."""
    Path(f"/proc/{wire.pid}/clear_refs").write_text("5")  # the high-water mark starts anew
    before = wire.rss_mb()
    peaks, over = [before], threading.Event()

    def watch() -> None:
        # Looked at all the while: a server that the fault ends takes its mark with it.
        while not over.wait(0.002):
            with suppress(OSError, StopIteration):
                peaks.append(peak_mb(wire))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        fault()
    finally:
        over.set()
        watcher.join()
    with suppress(OSError, StopIteration):
        peaks.append(peak_mb(wire))
    assert len(peaks) > 1, "the server's memory was never looked at"
    return max(peaks) - before


def peak_mb(wire: WireServer) -> float:
    """Return the high-water mark of the server's memory in MiB."""
    status = Path(f"/proc/{wire.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def tree_rss_mb(wire: WireServer) -> float:
    """Return the memory of the server and all below it, in MiB."""
    return sum(stat.rss_mb for stat in process_tree(wire.pid))


def _first_line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""  # the thread has just ended
