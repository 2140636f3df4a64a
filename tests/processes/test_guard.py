"""The guard by itself, as a server would run it: what it tells, and that it leaves nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO

import pytest
from process_marks import TREE, are_all_there, are_gone_in_time, fresh_environ, marked, within, zombies_of

from ot.processes import guard as guard_module
from pace import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is killed")

PYTHON = (sys.executable, "-I", "-S", "-c")


SCRIPT = f"import runpy; runpy.run_path({guard_module.__file__!r}, run_name='__main__')"
WITHOUT_PIDFD = f"import os; del os.pidfd_open; {SCRIPT}"
"""As on systems where no handle tells of a process's end."""

SERVER = """
import os, subprocess, sys
guard, lifeline, *argv = sys.argv[1:]
status = os.open(os.devnull, os.O_WRONLY)
numbers = map(str, (lifeline, status, os.getpid(), 0, 64))
subprocess.Popen([sys.executable, "-I", "-S", guard, *numbers, *argv], pass_fds=(int(lifeline), status)).wait()
"""
"""Plays a server that is killed while the test holds the other end of its lifeline."""


@dataclass(frozen=True)
class Guarded:
    """A guard that runs, and the pipes to it."""

    process: subprocess.Popen[bytes]
    lifeline: FileIO
    status: FileIO
    environ: dict[str, str]

    @property
    def stdout(self) -> IO[bytes]:
        """What the guarded process prints."""
        assert self.process.stdout is not None
        return self.process.stdout

    def words(self) -> list[str]:
        """Return the rest of what the guard says, until it has nothing more to say."""
        return self.status.read().decode().splitlines()

    def started(self) -> int:
        """Return the pid of the guarded process."""
        word, pid = self.status.readline().split()
        assert b"started" == word
        return int(pid)

    def all_gone(self) -> bool:
        """Return whether nothing is left, within the time that the server's death may take."""
        return are_gone_in_time(self.environ)


@contextmanager
def guarded(*argv: str, memory_mb: int = 0, processes: int = 64, script: str = SCRIPT) -> Generator[Guarded]:
    environ = fresh_environ()
    lifeline_end, lifeline = os.pipe()
    status, status_end = os.pipe()
    numbers = (lifeline_end, status_end, os.getpid(), memory_mb, processes)
    process = subprocess.Popen(
        [*PYTHON, script, *map(str, numbers), *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        pass_fds=(lifeline_end, status_end),
        env=environ,
        start_new_session=True,
    )
    os.close(lifeline_end)
    os.close(status_end)
    with process, FileIO(status, "rb") as said, FileIO(lifeline, "wb") as line:
        yield Guarded(process, line, said, environ)
        line.close()


@pytest.mark.parametrize(
    ("command", "word"), [("exit 0", "exit 0"), ("exit 3", "exit 3"), ("kill -SEGV $$", "signal 11")]
)
def test_how_the_process_ended_is_told(command: str, word: str) -> None:
    with guarded("sh", "-c", command) as guard:
        guard.started()
        assert [word] == guard.words()


@pytest.mark.parametrize(("path", "number"), [("/no/such/file", errno.ENOENT), ("/etc", errno.EACCES)])
def test_what_cannot_be_executed_is_told_by_its_error_number(path: str, number: int) -> None:
    with guarded(path) as guard:
        assert [f"failed {number}"] == guard.words()


def test_the_end_of_the_lifeline_ends_children_sessions_and_daemons() -> None:
    with guarded(*PYTHON, TREE + "time.sleep(300)") as guard:
        assert b"ready\n" == guard.stdout.readline()
        assert are_all_there(guard.environ)
        guard.lifeline.close()
        assert guard.all_gone()
        guard.started()
        assert ["signal 9"] == guard.words()


def test_a_byte_on_the_lifeline_is_enough_when_its_other_end_has_leaked() -> None:
    with guarded(*PYTHON, TREE + "time.sleep(300)") as guard, FileIO(os.dup(guard.lifeline.fileno()), "wb"):
        assert b"ready\n" == guard.stdout.readline()
        guard.lifeline.write(b"x")
        guard.lifeline.close()
        assert guard.all_gone()


@pytest.mark.parametrize("script", [SCRIPT, WITHOUT_PIDFD], ids=["pidfd", "asking"])
def test_what_a_process_has_started_does_not_outlive_it(script: str) -> None:
    with guarded(*PYTHON, TREE + "os._exit(7)", script=script) as guard:
        guard.started()
        assert ["exit 7"] == guard.words()
        assert guard.all_gone()


def test_the_servers_end_is_noticed_though_another_process_holds_the_lifeline() -> None:
    environ = fresh_environ()
    lifeline_end, lifeline = os.pipe()
    with FileIO(lifeline_end, "rb"), FileIO(lifeline, "wb"):
        play = [*PYTHON, SERVER, str(guard_module.__file__), str(lifeline_end), *PYTHON, TREE + "time.sleep(300)"]
        with subprocess.Popen(play, env=environ, stdout=subprocess.PIPE, pass_fds=(lifeline_end,)) as server:
            assert server.stdout is not None
            assert b"ready\n" == server.stdout.readline()
            server.kill()
            assert are_gone_in_time(environ)


def test_a_guard_whose_server_is_gone_already_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "started"
    lifeline_end, lifeline = os.pipe()
    with FileIO(lifeline_end, "rb"), FileIO(lifeline, "wb"):
        another = os.getppid()
        numbers = map(str, (lifeline_end, 2, another, 0, 64))
        argv = [sys.executable, "-I", "-S", str(guard_module.__file__), *numbers, "touch", str(file)]
        assert 0 == subprocess.run(argv, pass_fds=(lifeline_end,), timeout=PATIENCE).returncode
    assert not file.exists()


def test_signals_that_end_others_do_not_end_the_guard() -> None:
    with guarded(*PYTHON, TREE + "time.sleep(300)") as guard:
        assert b"ready\n" == guard.stdout.readline()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            guard.process.send_signal(number)
        guard.lifeline.close()
        assert guard.all_gone()
        guard.started()
        assert ["signal 9"] == guard.words()


def test_a_stopped_process_is_killed_too() -> None:
    with guarded("sleep", "300") as guard:
        os.kill(guard.started(), signal.SIGSTOP)
        guard.lifeline.close()
        assert ["signal 9"] == guard.words()
        assert guard.all_gone()


def test_the_process_gets_default_signals_its_limits_and_no_descriptor_but_three() -> None:
    tell = """
import os, resource, signal
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["SigIgn"], 16) & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1), int(status["SigBlk"], 16))
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_AS)[0] >> 20)
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1], os.getpid() == os.getsid(0))
"""
    with guarded(*PYTHON, tell, memory_mb=300) as guard:
        assert b"0 0\n(0, 0) 300\n[0, 1, 2] True\n" == guard.stdout.read()


def test_more_processes_than_allowed_are_killed_and_told() -> None:
    code = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(10)"
    with guarded(*PYTHON, code, processes=8) as guard:
        guard.started()
        assert ["limit processes", "signal 9"] == guard.words()
        assert guard.all_gone()


def test_a_bomb_that_makes_a_session_for_each_process_is_killed_too() -> None:
    # It doubles eight times and then ends by itself, so that a broken guard cannot harm the machine that tests it.
    code = "import os, time\nfor _ in range(8):\n    if os.fork() == 0: os.setsid()\ntime.sleep(10)"
    with guarded(*PYTHON, code, processes=16) as guard:
        guard.started()
        assert ["limit processes", "signal 9"] == guard.words()
        assert guard.all_gone()


def test_as_many_processes_as_allowed_may_run() -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
for _ in range(3):
    os.wait()
"""
    with guarded(*PYTHON, code, processes=4) as guard:
        guard.started()
        assert ["exit 0"] == guard.words()


def test_daemons_that_end_are_reaped_while_the_process_goes_on() -> None:
    code = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.05)
        os._exit(0)
    os.wait()
print("forked", flush=True)
while True:
    time.sleep(0.01)
"""
    with guarded(*PYTHON, code) as guard:
        assert b"forked\n" == guard.stdout.readline()
        assert within(PATIENCE, lambda: 2 == len(marked(guard.environ)) and not zombies_of(guard.process.pid))


def test_it_is_told_apart_who_has_spaces_and_brackets_in_its_name() -> None:
    code = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'a) R 1 (', 0, 0, 0); print('named', flush=True); input()"
    with subprocess.Popen([*PYTHON, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"named\n" == process.stdout.readline()
        assert os.getpid() == guard_module.parent_of(process.pid)
        assert process.pid in guard_module.children(os.getpid())
        assert process.pid in guard_module.children_by_search(os.getpid())
        process.kill()
