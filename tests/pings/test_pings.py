"""Pings of one client are answered in time, whatever another sends or walks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import pytest

from mcp_wire import WireServer
from pings.due_pings import DuePings
from pings.entries import ENTRIES, Entry
from shared_bed import SharedBed, shared_bed

HOSTILE = Path(__file__).with_name("hostile_server.py")
BARE = Path(__file__).parents[2] / "benchmarks" / "bare_server.py"
MORE_SECONDS = 0.05
"""What a ping may take beyond the slowest of the control's on the same machine."""
ATTEMPTS = 3
"""What a busy machine adds is not there each time; a stall is."""
MOST_COMPUTING = 2.0
"""Seconds that a control computes at most; they last many times as long where others take the cores."""
SHARES = 3


def share_of(name: str) -> int:
    """Return which share an entry belongs to; CI tries the first."""
    return zlib.crc32(name.encode()) % SHARES


IDLE = Entry("idle", "1 + 1")
COMPUTE = """
import threading, time
def compute():
    end = time.thread_time() + {seconds}
    while time.thread_time() < end:
        sum(range(100))
threading.Thread(target=compute, name='compute').start()
"""
COMPUTING = "import threading\nany(thread.name == 'compute' for thread in threading.enumerate())"


@dataclass
class Ward:
    """A server, one of the bare protocol library, and the slowest ping while next to nothing goes on."""

    wire: WireServer
    bare: WireServer
    control: float

    def slowest(self, entry: Entry) -> tuple[float, float]:
        """Return the slowest ping while *entry* is tried, and how long the server computed, in seconds."""
        before = computed(self.wire)
        with DuePings(self.wire) as pings:
            self.wire.send_raw(entry.lines)
            self.wire.run(entry.command, timeout=60)
        return pings.worst, computed(self.wire) - before

    def slowest_of_bare(self, seconds: float) -> float:
        """Return the slowest ping of the bare server while it computes as long in a thread."""
        with DuePings(self.bare) as pings:
            self.bare.run(COMPUTE.format(seconds=min(seconds, MOST_COMPUTING)), timeout=60)
            while self.bare.run(COMPUTING, timeout=60).text == "True":
                threading.Event().wait(0.02)
        return pings.worst


def computed(wire: WireServer) -> float:
    times = psutil.Process(wire.pid).cpu_times()
    return times.user + times.system


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    home = tmp_path_factory.mktemp("pings")
    (home / ".onetool").mkdir()
    settings = {
        "engines": {"use": "exact"},
        "servers": {"hostile": {"command": sys.executable, "args": [str(HOSTILE)], "timeout": 10}},
        "policy": {"allow": ["hostile.*"]},
    }
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    environment = {**os.environ, "HOME": str(home)}
    with (
        WireServer.start(command, cwd=home, env=environment) as wire,
        WireServer.start([sys.executable, str(BARE)], cwd=home, env=environment) as bare,
    ):
        assert wire.run("hostile.reply(kind='text', n=3)").text == "xxx"
        assert wire.run("ot.help(query='read')").text
        assert bare.run("1 + 1").text == "2"
        ward = Ward(wire, bare, 0.0)
        # The least of them: at its start a server still has other things to do, and too large a control hides a stall.
        ward.control = min(ward.slowest(IDLE)[0] for _ in range(ATTEMPTS))
        yield ward


def check(ward: Ward, entry: Entry) -> None:
    late = [lateness(ward, entry)]
    while min(late) > MORE_SECONDS and len(late) < ATTEMPTS:
        late.append(lateness(ward, entry))
    if entry.name.startswith("become"):
        ward.wire.run("hostile.become(kind='plain', n=0)")
    assert min(late) <= MORE_SECONDS, late
    assert ward.wire.run("1 + 1").text == "2"


def lateness(ward: Ward, entry: Entry) -> float:
    """Return by how much the slowest ping was slower than the control's.

    On a quiet machine an idle server is control enough. Where other work takes the cores, threads of one interpreter
    hold each other up for longer than elsewhere; how much, both controls show right afterwards: the idle server once
    more, and the bare protocol library.
    """
    slowest, seconds = ward.slowest(entry)
    if slowest <= ward.control + MORE_SECONDS:
        return slowest - ward.control
    return slowest - max(ward.slowest(IDLE)[0], ward.slowest_of_bare(seconds))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if share_of(name) else ()) for name in ENTRIES]
)
def test_a_ping_is_answered_in_time_whatever_is_sent(ward: Ward, name: str) -> None:
    check(ward, ENTRIES[name])


def test_there_are_at_least_150_entries_of_every_kind() -> None:
    assert len(ENTRIES) >= 150
    kinds = {name.partition(":")[0] for name in ENTRIES}
    assert kinds == {"frame", "command", "result", "reply", "notify", "write", "ask", "become", "client"}


def test_the_shares_are_of_like_size() -> None:
    sizes = [sum(share_of(name) == share for name in ENTRIES) for share in range(SHARES)]
    assert len(ENTRIES) / SHARES * 0.8 < min(sizes) <= max(sizes) < len(ENTRIES) / SHARES * 1.2


def test_a_server_that_stands_still_is_found_out(ward: Ward) -> None:
    with DuePings(ward.wire) as pings:
        os.kill(ward.wire.pid, signal.SIGSTOP)
        threading.Event().wait(0.2)
        os.kill(ward.wire.pid, signal.SIGCONT)
    assert pings.worst >= 0.15


FILES = 200_000
TIMES = 3
"""How many times as long as the control's a run may take, by the median."""
RUNS = 15
MEMORY = Path("/dev/shm")
# A slow machine computes for longer than a program may by default, and how long is not the subject.
CONFIG = """\
engines: {use: exact}
limits: {cpu_seconds: 60}
policy: {allow: ["file.*"]}
"""
PROGRAM = """
import asyncio
async def look():
    try:
        return await {call}
    except Exception as error:
        return str(error)
await asyncio.gather(*[look() for _ in range(32)])
"""
WALKS = ("file.search(pattern='(a|b|c)+zq')", "file.tree()")
MANY = {
    "os.listdir": "import os\nlen(os.listdir('many'))",
    "Path.rglob": "from pathlib import Path\nsum(1 for _ in Path('many').rglob('f*'))",
}


@pytest.fixture(scope="module")
def hostile() -> Iterator[Path]:
    """A repository with rules that take long, names that they take long for, and a directory of very many files."""
    place = Path(tempfile.mkdtemp(prefix="walks", dir=MEMORY if MEMORY.is_dir() else None))
    (place / ".git").mkdir()
    (place / "many").mkdir()
    (place / ".gitignore").write_text(("*a" * 100 + "b\n") * 3000)
    for number in range(300):
        (place / ("a" * 200 + str(number))).touch()
    many = os.open(place / "many", os.O_RDONLY)
    for number in range(FILES):
        os.mknod(f"f{number}", dir_fd=many)
    os.close(many)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBed]:
    with shared_bed(tmp_path_factory.mktemp("user")) as user:
        user.config.write_text(CONFIG)
        yield user


def answers(client: WireServer) -> tuple[float, float]:
    """Return the slowest ping and the median of a few runs, in seconds."""
    with DuePings(client) as pings:
        seconds: list[float] = []
        for _ in range(RUNS):
            started = time.perf_counter()
            assert client.run("1 + 1", timeout=60).text == "2"
            seconds.append(time.perf_counter() - started)
    return pings.worst, median(seconds)


def lateness_beside_walks(client: WireServer, busy: WireServer, program: str) -> tuple[float, float]:
    """Return by how much the slowest ping is late while *busy* walks, and how many times as long a run takes."""
    ping, run = answers(client)
    walking = busy.send_run(program)
    late_ping, late_run = answers(client)
    busy.cancel(walking)
    # Its own next call has a helper again.
    assert ".gitignore" in busy.run("file.glob(pattern='.gitignore')", timeout=60).text
    return late_ping - ping, late_run / run


@pytest.mark.parametrize("walk", WALKS)
def test_a_tree_that_one_client_walks_keeps_no_other_waiting(user: SharedBed, hostile: Path, walk: str) -> None:
    with user.client() as client, user.client(cwd=hostile) as busy:
        assert busy.run("file.info(path='many')['type']").text == "directory"
        seen: list[tuple[float, float]] = []
        while len(seen) < ATTEMPTS:
            seen.append(lateness_beside_walks(client, busy, PROGRAM.format(call=walk)))
            if seen[-1][0] <= MORE_SECONDS and seen[-1][1] <= TIMES:
                return
        pytest.fail(f"late by seconds, times as long: {seen}")


def test_a_directory_of_very_many_files_is_listed_by_pythons_own_functions(user: SharedBed, hostile: Path) -> None:
    with user.client(cwd=hostile) as client:
        assert {name: client.run(program).text for name, program in MANY.items()} == dict.fromkeys(MANY, str(FILES))
