"""The guard's start, and the pipes between the server and a guarded process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple

GUARD = Path(__file__).with_name("guard.py")
CHUNK_BYTES = 64 << 10


class PipeEnd:
    """One end of a pipe, as loops want it: a file that can be closed.

    uvloop closes the descriptor by itself and then this, when its number may be that of another thread's file already:
    so nothing is closed but this very pipe.
    """

    def __init__(self, descriptor: int) -> None:
        """Own *descriptor* from now on."""
        self._descriptor = descriptor
        self._status = os.fstat(descriptor)

    @property
    def closed(self) -> bool:
        """Whether it was closed here."""
        return self._descriptor < 0

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Close it, unless that is done already."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), self._status):
                os.close(descriptor)


class PipeDrain:
    """Reads a pipe to its end, as bytes come: its writer never has to wait for anyone here."""

    def __init__(self, pipe: PipeEnd, take: Callable[[bytes], None]) -> None:
        """Give what is read to *take*; a mistake of *take* does not stop the reading."""
        self.ended = asyncio.Event()
        self._pipe = pipe
        self._take = take
        self._loop = asyncio.get_running_loop()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._read)

    def close(self) -> None:
        """Read no more."""
        if not self.ended.is_set():
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            self.ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self._take(data)
        else:
            self.close()


class Spawned(NamedTuple):
    """A guard that is starting, and the server's ends of its pipes."""

    guard: subprocess.Popen[bytes]
    stdin: PipeEnd
    stdout: PipeEnd
    stderr: PipeEnd
    status: PipeEnd
    lifeline: PipeEnd
    unread: PipeEnd | None
    """The process's own end of its standard input, which keeps what a dead process has not read."""


def spawn(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, memory_mb: int, processes: int, *, keep_unread: bool = False
) -> Spawned:
    """Start the guard of *argv*; nothing is left open when that fails. Keep what it does not read if *keep_unread*.

    Raises:
        OSError: There are no descriptors, processes or memory left, or no directory *cwd*.
    """
    with ExitStack() as theirs, ExitStack() as ours:

        def pipe(reader: ExitStack, writer: ExitStack) -> tuple[PipeEnd, PipeEnd]:
            ends = os.pipe()
            return reader.enter_context(closing(PipeEnd(ends[0]))), writer.enter_context(closing(PipeEnd(ends[1])))

        in_end, stdin = pipe(ours if keep_unread else theirs, ours)
        stdout, out_end = pipe(ours, theirs)
        stderr, err_end = pipe(ours, theirs)
        status, status_end = pipe(ours, theirs)
        lifeline_end, lifeline = pipe(theirs, ours)
        passed = (lifeline_end.fileno(), status_end.fileno())
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", GUARD, *map(str, (*passed, os.getpid(), memory_mb, processes)), *argv],
            stdin=in_end.fileno(),
            stdout=out_end.fileno(),
            stderr=err_end.fileno(),
            pass_fds=passed,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        ours.pop_all()
        return Spawned(guard, stdin, stdout, stderr, status, lifeline, in_end if keep_unread else None)


class ReadProtocol(asyncio.StreamReaderProtocol):
    """Feeds a reader, and tells when its pipe is closed."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        """Feed *reader*."""
        super().__init__(reader)
        self.ended = asyncio.Event()

    def eof_received(self) -> bool:
        """Pass the end on, and let the transport close: uvloop would keep the pipe open otherwise."""
        super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the pipe is closed."""
        super().connection_lost(exc)
        self.ended.set()
