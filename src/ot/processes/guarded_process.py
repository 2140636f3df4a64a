"""GuardedProcess: a process that the server talks to, and that never outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ot.processes.guard_pipes import PipeDrain, ReadProtocol, Spawned, spawn

if sys.platform != "win32":
    import fcntl
    import termios


FRAME_BYTES = 16 << 20
TAIL_BYTES = 4 << 10
CHUNK_BYTES = 64 << 10
GRACE_SECONDS = 1.0
GUARD_SECONDS = 7.0
SILENT_SECONDS = 0.5
"""How long a process may live on that has closed its end of the wire."""
REAP_PAUSE = 0.002
STDERR_BYTES = 64 << 10
LINE_BYTES = 4 << 10
TakeOutput = Callable[[bytes], None]
EndingKind = Literal["exit", "signal", "limit"]
"""By itself, by a signal, or because it had started more processes than it may."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended, and the last that it wrote on standard error."""

    kind: EndingKind
    number: int
    stderr: str = ""

    @property
    def text(self) -> str:
        """The ending in words, such as ``signal SIGSEGV``."""
        if self.kind == "exit":
            return f"exit code {self.number}"
        if self.kind == "limit":
            return f"more than {self.number} processes"
        try:
            return f"signal {signal.Signals(self.number).name}"
        except ValueError:
            return f"signal {self.number}"


class StderrRing:
    """The last bytes of a stream, and its lines for whoever wants them."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        """Give every line to *on_line*, cut where it is very long."""
        self._bytes = bytearray()
        self._line = b""
        self._on_line = on_line

    def take(self, data: bytes) -> None:
        """Keep *data*, and forget what is too old."""
        self._bytes += data
        if len(self._bytes) > 2 * STDERR_BYTES:
            del self._bytes[:-STDERR_BYTES]
        if self._on_line is not None:
            *lines, self._line = (self._line + data).split(b"\n")
            self._line = self._line[:LINE_BYTES]
            for line in lines:
                self._on_line(line[:LINE_BYTES].decode(errors="replace"))

    def tail(self, size: int = STDERR_BYTES) -> str:
        """Return the last *size* bytes as text, whatever they are."""
        return self._bytes[-size:].decode(errors="replace")


class GuardedProcess:
    """A process, everything that it starts, and the three streams between it and the server."""

    stdin: asyncio.StreamWriter

    def __init__(
        self, spawned: Spawned, argv: Sequence[str], processes: int, ring: StderrRing, on_output: TakeOutput | None
    ) -> None:
        """Use ``start`` instead."""
        self.pid = 0
        self.unread_bytes = 0
        """Once it has ended: what it was sent and never read, if that was to be kept."""
        self.stdout = asyncio.StreamReader(limit=FRAME_BYTES)
        self._argv = argv
        self._processes = processes
        self._spawned = spawned
        self._ring = ring
        self._heard = b""
        self._connected = asyncio.Event()
        self._told = asyncio.Event()
        self._last_resort: asyncio.TimerHandle | None = None
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._reading = PipeDrain(spawned.stdout, on_output) if on_output else ReadProtocol(self.stdout)
        self._stderr = PipeDrain(spawned.stderr, ring.take)
        self._status = PipeDrain(spawned.status, self._hear)
        self._watching = asyncio.create_task(self._watch())

    @staticmethod
    async def start(
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        memory_mb: int | None = None,
        processes: int = 64,
        on_line: Callable[[str], None] | None = None,
        on_output: TakeOutput | None = None,
        keep_unread: bool = False,
    ) -> GuardedProcess:
        """Return the process, running; nothing of it is left when it cannot be started, or the start is cancelled.

        What it writes goes to *on_output* as it comes, or else into ``stdout``.

        Raises:
            OSError: It cannot be executed, or there are no descriptors, processes or memory left.
        """
        ring = StderrRing(on_line)
        if sys.platform == "win32":
            return await WindowsProcess.start_unguarded(argv, env, cwd, ring, on_output)
        spawned = spawn(argv, env, cwd, memory_mb or 0, processes, keep_unread=keep_unread)
        process = GuardedProcess(spawned, argv, processes, ring, on_output)
        try:
            await process._await_start()
        except BaseException:
            process.kill()
            raise
        return process

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._watching.done()

    def stderr_tail(self) -> str:
        """Return the last that it wrote on standard error, at most 64 KiB."""
        return self._ring.tail()

    async def wait(self) -> Ending:
        """Wait until nothing that it started is left and every pipe is closed, and return how it ended."""
        return await asyncio.shield(self._watching)

    async def output_ended(self) -> None:
        """Wait until nothing more comes from its standard output."""
        await self._reading.ended.wait()

    async def end(self, grace: float = 2.0) -> Ending:
        """Close its standard input, give it *grace* seconds to leave by itself, then kill it."""
        self.stdin.close()
        try:
            return await self.wait_at_most(grace)
        finally:
            self.kill()

    async def wait_at_most(self, seconds: float = SILENT_SECONDS) -> Ending:
        """Return how it ended, killing it after *seconds*: it may only have closed its output."""
        try:
            async with asyncio.timeout(seconds):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()

    def kill(self) -> None:
        """Have the process and everything that it started killed, at once."""
        lifeline = self._spawned.lifeline
        if lifeline.closed:
            return
        # The byte is for a guard whose lifeline has leaked to a third process: closing our end would end nothing.
        with suppress(OSError):
            os.write(lifeline.fileno(), b"x")
        lifeline.close()
        loop = self._watching.get_loop()
        if not loop.is_closed():
            self._last_resort = loop.call_later(GUARD_SECONDS, self._kill_guard)

    def _kill_guard(self) -> None:
        # A guard that was stopped can do nothing. What it has adopted in other sessions is then out of reach.
        self._spawned.guard.kill()
        self._kill_group()

    def _kill_group(self) -> None:
        if self.pid:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(reading := self._reading, ReadProtocol):
            self._reader, _ = await loop.connect_read_pipe(lambda: reading, self._spawned.stdout)
        writing = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        self._writer, _ = await loop.connect_write_pipe(lambda: writing, self._spawned.stdin)
        self.stdin = asyncio.StreamWriter(self._writer, writing, None, loop)

    async def _await_start(self) -> None:
        await self._connected.wait()
        await self._told.wait()
        words = self._words()
        if "started" in words:
            self.pid = int(words["started"])
            return
        await self.wait()
        if "failed" in words:
            number = int(words["failed"])
            raise OSError(number, os.strerror(number), self._argv[0])
        raise ChildProcessError(f"the guard of {self._argv[0]} did not start: {self._ring.tail(TAIL_BYTES)}")

    def _hear(self, data: bytes) -> None:
        self._heard += data
        if b"\n" in data:
            self._told.set()

    def _words(self) -> dict[str, str]:
        """What the guard has said, such as ``{"started": "123", "exit": "3"}``."""
        return dict(line.split(maxsplit=1) for line in self._heard.decode().splitlines())

    async def _watch(self) -> Ending:
        try:
            # Here, where no cancelled start interrupts it and no early end closes a pipe that a loop is about to use.
            await self._connect()
            self._connected.set()
            await self._status.ended.wait()
            await self._reap_guard()
            ending = self._ending()
            await self._read_rest()
            return Ending(*ending, self._ring.tail(TAIL_BYTES))
        except asyncio.CancelledError:  # the loop is closing: there is no later in which the guard could be reaped
            self.kill()
            if not self._wait_for_guard():
                self._kill_guard()
                self._wait_for_guard()
            raise
        finally:
            self._connected.set()
            self._told.set()
            self._reap_later()
            self._release()

    def _wait_for_guard(self) -> bool:
        try:
            self._spawned.guard.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True

    async def _reap_guard(self) -> None:
        # Its pipe has ended, so it is about to exit. Asking takes no descriptor, thread or signal handler.
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                while self._spawned.guard.poll() is None:  # noqa: ASYNC110 - nothing tells, see above
                    await asyncio.sleep(REAP_PAUSE)

    def _reap_later(self) -> None:
        """Look again until the guard has exited, for which it may need a processor that others keep busy."""
        if self._spawned.guard.poll() is None:
            self._watching.get_loop().call_later(GRACE_SECONDS, self._reap_later)

    async def _read_rest(self) -> None:
        # All writers are dead, unless an end has leaked out of the process's tree: then there is no end to wait for.
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._stderr.ended.wait()
                await self._reading.ended.wait()

    def _ending(self) -> tuple[EndingKind, int]:
        words = self._words()
        if "limit" in words:
            return "limit", self._processes
        if "exit" in words:
            return "exit", int(words["exit"])
        if "signal" not in words:  # someone killed the guard, and with it the process, but not what that had started
            self._kill_group()
        return "signal", int(words.get("signal", signal.SIGKILL))

    def _count_unread(self) -> None:
        end = self._spawned.unread
        if end is None or self._writer is None:
            return
        in_pipe = array("i", [0])
        with suppress(OSError):
            fcntl.ioctl(end.fileno(), termios.FIONREAD, in_pipe)
            self.unread_bytes = in_pipe[0] + self._writer.get_write_buffer_size()
        end.close()

    def _release(self) -> None:
        self._count_unread()
        if self._last_resort is not None:
            self._last_resort.cancel()
        self._spawned.lifeline.close()
        self._stderr.close()
        self._status.close()
        if isinstance(self._reading, PipeDrain):
            self._reading.close()
        # A pipe without a transport, because the loop closed first, must still be closed here.
        self._reader.close() if self._reader else self._spawned.stdout.close()
        if self._writer is None:
            self._spawned.stdin.close()
        elif not self._writer.is_closing():
            self._writer.abort()


class WindowsProcess(GuardedProcess):
    """A process where there is no guard: it leaves when its standard input ends, and is not limited.

    Written to work, untested.
    """

    def __init__(self, process: asyncio.subprocess.Process, ring: StderrRing, on_output: TakeOutput | None) -> None:
        """Use ``GuardedProcess.start`` instead."""
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the three streams must be pipes")
        self.pid = process.pid
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._ring = ring
        self._watching = asyncio.create_task(self._watch_unguarded(process, process.stderr))
        self._feeding = asyncio.create_task(_feed(process.stdout, on_output)) if on_output else self._watching

    @classmethod
    async def start_unguarded(
        cls, argv: Sequence[str], env: Mapping[str, str], cwd: Path, ring: StderrRing, on_output: TakeOutput | None
    ) -> GuardedProcess:
        """Return the process, running."""
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, limit=FRAME_BYTES
            ),
            ring,
            on_output,
        )

    async def output_ended(self) -> None:
        """Wait until nothing more comes from its standard output."""
        await asyncio.wait((self._feeding,))

    def kill(self) -> None:
        """Have the tree of processes killed."""
        if self.running:
            subprocess.Popen(["taskkill", "/T", "/F", "/PID", str(self.pid)], stdout=subprocess.DEVNULL)

    async def _watch_unguarded(self, process: asyncio.subprocess.Process, stderr: asyncio.StreamReader) -> Ending:
        await _feed(stderr, self._ring.take)
        return Ending("exit", await process.wait(), self._ring.tail(TAIL_BYTES))


async def _feed(stream: asyncio.StreamReader, take: TakeOutput) -> None:
    while data := await stream.read(CHUNK_BYTES):
        take(data)
