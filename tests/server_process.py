"""A server process, whatever is spoken with it: how it is started, what it says and holds, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import IO, Self

import warm_start
from pace import PATIENCE, patiently
from warm_start import WarmProcess

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Snapshot:
    """What a process and those below it hold."""

    fds: int
    threads: int
    children: tuple[int, ...]
    rss_mb: float


@dataclass(frozen=True)
class ProcessStat:
    """One process as /proc tells of it."""

    pid: int
    parent: int
    session: int
    threads: int
    rss_mb: float


def process_stat(pid: int) -> ProcessStat | None:
    """Return the process *pid*, or nothing when it has gone or is only waiting to be buried."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - sampled a hundred times a second
            # The name may hold spaces and brackets; fields count from behind its last one.
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    parent, session, threads, pages = (int(fields[index]) for index in (1, 3, 17, 21))
    # The first thread of a killed process may be over while another still takes in a last read.
    if fields[0] in (b"Z", b"X") and threads <= 1:
        return None
    return ProcessStat(pid, parent, session, threads, pages * PAGE / (1 << 20))


def process_tree(root: int) -> list[ProcessStat]:
    """Return *root* and what it has started: its descendants, and orphans that stayed in its session."""
    stats = [stat for name in os.listdir("/proc") if name.isdigit() and (stat := process_stat(int(name)))]  # noqa: PTH208 - as above
    members = {root}
    grown = True
    while grown:
        below = {s.pid for s in stats if s.parent in members or s.session == root}
        grown = not below <= members
        members |= below
    return [stat for stat in stats if stat.pid in members]


def _start_cold(
    args: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None, stderr: int, memory_bytes: int | None
) -> subprocess.Popen[bytes]:
    command = list(args)
    if memory_bytes:
        command = ["/bin/sh", "-c", 'ulimit -v "$0" && exec "$@"', str(memory_bytes >> 10), *command]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=cwd,
        env=None if env is None else dict(env),
        start_new_session=True,
        bufsize=0,
    )


class ServerProcess:
    """A process in a session of its own, between two pipes and a file for what it writes to standard error."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        memory_bytes: int | None = None,
        warm: bool = True,
        also: tuple[str, ...] = (),
    ) -> None:
        """Start *args*, as a fork with all imports, and *also* those, done unless it is not to be *warm*.

        *memory_bytes* bounds its address space (``ulimit -v``).
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self._last_words = ""
        stderr = self._errors.fileno()
        self.process: subprocess.Popen[bytes] | WarmProcess
        if warm and warm_start.can_be_warm(args):
            self.process = warm_start.start(args, cwd=cwd, env=env, stderr=stderr, memory_bytes=memory_bytes, also=also)
        else:
            self.process = _start_cold(args, cwd=cwd, env=env, stderr=stderr, memory_bytes=memory_bytes)

    @property
    def input(self) -> IO[bytes]:
        """Where the server reads."""
        assert self.process.stdin
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        """Where the server writes."""
        assert self.process.stdout
        return self.process.stdout

    @property
    def pid(self) -> int:
        """The server's process id, which is also its session's."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def rss_mb(self) -> float:
        """Return the resident memory of the server alone, in MiB."""
        stat = process_stat(self.pid)
        return stat.rss_mb if stat else 0.0

    def fds(self) -> list[str]:
        """Return what the server's descriptors lead to."""
        found: list[str] = []
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(f"{entry.name}: {entry.readlink()}")
        return sorted(found)

    def threads(self) -> int:
        """Return how many threads the server has."""
        stat = process_stat(self.pid)
        return stat.threads if stat else 0

    def children(self) -> tuple[int, ...]:
        """Return the processes below the server, and orphans of its session."""
        return tuple(stat.pid for stat in process_tree(self.pid) if stat.pid != self.pid)

    def snapshot(self) -> Snapshot:
        """Return what the server holds now."""
        return Snapshot(len(self.fds()), self.threads(), self.children(), self.rss_mb())

    def stderr_text(self) -> str:
        """Return all that the server has written to standard error, also after it was closed."""
        if self._errors.closed:
            return self._last_words
        return os.pread(self._errors.fileno(), os.fstat(self._errors.fileno()).st_size, 0).decode(errors="replace")

    def wait_for_stderr(self, words: str) -> None:
        """Return once the server has written *words* to standard error."""
        for _ in patiently():
            if words in self.stderr_text():
                return
        raise AssertionError(f"standard error does not say {words!r}: {self.stderr_text()}")

    def signal(self, number: int = SIGTERM) -> None:
        """Send a signal to the server alone."""
        os.kill(self.pid, number)

    def wait_for_end(self, timeout: float = PATIENCE) -> int:
        """Return the exit code once the server has ended."""
        return self.process.wait(timeout)

    def close_stdin(self) -> None:
        """Close the server's input, which asks it to end."""
        with contextlib.suppress(BrokenPipeError):
            self.input.close()

    def kill(self, number: int = SIGKILL) -> int:
        """Send a signal to the server and all of its session, bury it, and return its exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        code = self.wait_for_end()
        self._heard_out()
        self.close_stdin()
        self.output.close()
        self._last_words = self.stderr_text()
        self._errors.close()
        return code

    def _heard_out(self) -> None:
        """Take what is left of the output of a server that has ended."""

    def close(self, timeout: float = PATIENCE) -> int:
        """Ask the server to end, wait for that, and return its exit code; kill it if it does not."""
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            self._ask_to_end()
            self.wait_for_end(timeout)
        return self.kill()

    def _ask_to_end(self) -> None:
        self.signal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
