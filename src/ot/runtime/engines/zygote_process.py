"""ZygoteProcess: the server's end of a zygote, which hands out its children."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ot.errors import EngineCrashed
from ot.runtime.engines.cgroup import GroupReport, JailGroup
from ot.runtime.engines.jail.frames import HEADER, frame
from ot.runtime.engines.jail_command import ZygoteCommand

logger = logging.getLogger(__name__)

START_SECONDS = 10.0
MAX_ANSWER = 1 << 16
MAX_STDERR = 2000
MOST_ASKED = 64
"""Requests that wait for their answer; many more would not fit into the socket, and others wait here."""
LOWER_BY = 10
"""In the kernel's steps of niceness: who yields gets a tenth of the processor beside one that does not."""
Commands = Callable[[int], Sequence[ZygoteCommand]]


@dataclass(frozen=True)
class Locked:
    """What a zygote told about its jail."""

    layers: Mapping[str, Sequence[str]]
    """By layer, what it should have stopped and did not."""
    user: str
    landlock: int
    namespaces: bool
    notes: tuple[str, ...] = field(default=())
    """Why stronger ways to start it failed."""
    group: GroupReport | None = None
    """What its control group limits."""


class ZygoteProcess:
    """A zygote that runs; every request is answered in the order of requests."""

    def __init__(
        self, commands: Commands, environ: Mapping[str, str], *, jailed: bool, group: JailGroup | None = None
    ) -> None:
        """Start the first of *commands* in *group*, which ends with it; later ones are tried when it fails."""
        self._environ = environ
        self._group = group
        self._jailed = jailed
        self._waiting: deque[asyncio.Future[tuple[socket.socket, int]]] = deque()
        self._turns = asyncio.Semaphore(MOST_ASKED)
        self._notes: list[str] = []
        self._commands = commands
        self._left = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_warm: Callable[[], None] = lambda: None
        self._spawn()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = self._commands(theirs.fileno())[self._left]
            argv = self._group.joining(command.argv) if self._group else command.argv
            self._process = subprocess.Popen(
                argv, env=dict(self._environ), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/" if self._jailed else None,
                start_new_session=True,
            )  # fmt: skip
        self._control = ours
        self._command = command
        settings: dict[str, Any] = {
            "jailed": self._jailed,
            "namespaces": command.namespaces,
            "read_paths": command.read_paths,
            "imports": command.imports,
        }
        settings |= {"server": os.getpid()}
        with contextlib.suppress(OSError):  # it died at once: the wait for its report tells why
            ours.send(json.dumps(settings).encode())

    # ---------------------------------------------------------------- the start

    async def locked(self) -> Locked:
        """Return which layers hold, once the zygote has tried them.

        Raises:
            EngineCrashed: It could not be started in any way.
        """
        while True:
            report = await self._report()
            if "failed" not in report:
                break
            self._notes.append(report["failed"])
            await self._in_thread(self._stop)
            self._left += 1
            if self._left >= len(self._commands(0)):
                raise EngineCrashed("; ".join(self._notes))
            self._spawn()
        self._listen()
        group = self._group.report(self._process.pid) if self._group else None
        layers = report["layers"] | ({"cgroup": group.missing} if group else {})
        return Locked(layers, report["user"], report["landlock"], self._command.namespaces, tuple(self._notes), group)

    async def _report(self) -> dict[str, Any]:
        self._control.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await loop.sock_recv(self._control, MAX_ANSWER)
        except TimeoutError:
            return {"failed": "it did not start in time"}
        except OSError:  # it ended without having read what it was sent
            answer = b""
        return json.loads(answer) if answer else {"failed": await self._last_words()}

    async def _last_words(self) -> str:
        stderr = self._process.stderr
        assert stderr is not None
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._kill)
        words = await loop.run_in_executor(None, stderr.read, MAX_STDERR)
        text = words.decode(errors="replace").strip()
        return f"{Path(self._command.argv[0]).name}: {text.splitlines()[-1] if text else 'it ended'}"

    # ---------------------------------------------------------------- children

    def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._control.fileno(), self._answered)

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self._loop is not None

    async def fork(self, memory_bytes: int, cpu_seconds: float) -> Child:
        """Return a new child under these limits, which has yet to lock itself up.

        Raises:
            EngineCrashed: There is none to be had.
        """
        await self._turns.acquire()  # given back by the answer, also when nobody waits for it any more
        if self._loop is None:
            self._turns.release()
            raise EngineCrashed("the zygote is not running")
        if self._group:
            self._group.allow(memory_bytes)
        answer: asyncio.Future[tuple[socket.socket, int]] = self._loop.create_future()
        self._waiting.append(answer)
        try:
            self._control.send(json.dumps({"memory_bytes": memory_bytes, "cpu_seconds": cpu_seconds}).encode())
        except OSError as error:
            self._lost(str(error))
        try:
            connection, pidfd = await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and not answer.exception():
                _let_go(*answer.result())
            raise
        return await Child.connected(connection, pidfd, self._group)

    def _answered(self) -> None:
        try:
            answer, fds, _, _ = socket.recv_fds(self._control, MAX_ANSWER, 2)
        except BlockingIOError:
            return
        except OSError as error:
            return self._lost(str(error))
        if not answer:
            return self._lost("the zygote ended")
        if not fds and "warm" in (told := json.loads(answer)):
            return self.on_warm() if told["warm"] else None
        waiting = self._next_asked()
        if len(fds) != 2 or waiting is None or waiting.done():
            for fd in fds:
                os.close(fd)
            if waiting is not None and not waiting.done():
                waiting.set_exception(EngineCrashed(json.loads(answer).get("failed", "no child was handed over")))
            return None
        return waiting.set_result((socket.socket(fileno=fds[0]), fds[1]))

    def _lost(self, why: str) -> None:
        self._stop_listening()
        while waiting := self._next_asked():
            if not waiting.done():
                waiting.set_exception(EngineCrashed(why))

    def _next_asked(self) -> asyncio.Future[tuple[socket.socket, int]] | None:
        if not self._waiting:
            return None
        self._turns.release()
        return self._waiting.popleft()

    def _stop_listening(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._control.fileno())
            self._loop = None

    # ---------------------------------------------------------------- the end

    async def aclose(self) -> None:
        """End the zygote and all its children."""
        self._lost("the engine was closed")
        await self._in_thread(self.close)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(None, work)

    def close(self) -> None:
        """End the zygote and all its children, where no event loop is."""
        self._stop()
        if self._group:
            self._group.remove()

    def _stop(self) -> None:
        self._control.close()
        self._kill()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _kill(self) -> None:
        # It ends by itself when its socket is closed; a child that is still locked in does so with it.
        self._process.kill()
        self._process.wait()


class Child(asyncio.Protocol):
    """One forked child and the messages from it; it is used for one run, or for one session, and never again."""

    def __init__(self, pidfd: int, group: JailGroup | None = None) -> None:
        self._pidfd = pidfd
        self._group = group
        self._buffer = bytearray()
        self._most = 0
        self._transport: asyncio.WriteTransport | None = None
        self._received: Callable[[int, bytes], None] | None = None
        self._lost: Callable[[str], None] | None = None
        self.pid = _pid_of(pidfd)
        self.gone = False
        self._resting = False

    @classmethod
    async def connected(cls, connection: socket.socket, pidfd: int, group: JailGroup | None = None) -> Child:
        """Return the child at the other end of *connection*."""
        child = cls(pidfd, group)
        if group:
            group.offer(child.pid)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: child, sock=connection)
        except BaseException:
            child.kill()
            connection.close()
            raise
        return child

    def begin(
        self, received: Callable[[int, bytes], None], lost: Callable[[str], None], most_bytes: int, start: bytes
    ) -> None:
        """Give the child its program, and hand what it sends to *received* until it is *lost*."""
        self._received, self._lost, self._most = received, lost, most_bytes
        if self._resting:
            self._resting = not self._signal(signal.SIGCONT)
        self.send(0, start)

    def send(self, number: int, payload: bytes) -> None:
        """Send a message; a child that is gone does not get it."""
        if self._transport is not None and not self.gone:
            self._transport.write(frame(number, payload))

    def pause(self, paused: bool) -> None:
        """Take no more from the child, or again: it waits meanwhile."""
        transport: Any = self._transport
        if transport is not None and not self.gone:
            (transport.pause_reading if paused else transport.resume_reading)()

    def rest(self) -> None:
        """Stop the child until the next program of its session; one that speaks meanwhile is ended.

        A thread that a program left would otherwise compute on, on no run's account.
        """
        self._resting = self._signal(signal.SIGSTOP)
        self.pause(False)
        self._received = self._lost = None
        if self._buffer or not self._resting:
            self.kill()

    def is_alive(self) -> bool:
        """Return whether its process is still there, also when the end of the connection is not yet noticed."""
        return not self.gone and self._signal(0)

    def _signal(self, number: int) -> bool:
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except OSError:
            return False
        return True

    def cpu_seconds(self) -> float:
        """Return how long the child has computed, or nothing known of a dead one."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # the clock of a process, as clock_getcpuclockid() says
        except OSError:
            return 0.0

    def lower(self) -> None:
        """Let every thread of the child yield to whoever else wants to compute; later ones begin so."""
        if not self.is_alive():
            return
        low = min(os.getpriority(os.PRIO_PROCESS, 0) + LOWER_BY, 19)
        with contextlib.suppress(OSError):  # it, or the thread, has just ended
            for thread in os.listdir(f"/proc/{self.pid}/task"):  # noqa: PTH208 - names are all that is needed
                os.setpriority(os.PRIO_PROCESS, int(thread), low)

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel has ended it because all programs together used up their memory."""
        return self._group is not None and self._group.was_out_of_memory()

    def kill(self) -> None:
        """End the child, if it has not ended, and forget it."""
        self._received = self._lost = None
        if self._pidfd >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._transport is not None:
            self._transport.abort()
        self.gone = True

    # ---------------------------------------------------------------- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way to the child."""
        self._transport = transport  # pyright: ignore[reportAttributeAccessIssue] - a stream's, which can be written to

    def data_received(self, data: bytes) -> None:
        """Hand on every whole message; one that is too large, or comes before the program, ends the child."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size and self._received is not None:
            size, number = HEADER.unpack_from(self._buffer)
            if size > self._most:
                return self._give_up("it sent a message that is too large")
            if len(self._buffer) < HEADER.size + size:
                return None
            payload = bytes(memoryview(self._buffer)[HEADER.size : HEADER.size + size])
            del self._buffer[: HEADER.size + size]
            self._received(number, payload)
        if self._received is None and self._buffer:
            # Nobody reads any more: what it still says must not pile up here.
            self._give_up("it spoke before it was asked")
            self.kill()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the child has gone."""
        self._give_up("it ended")

    def _give_up(self, why: str) -> None:
        self.gone = True
        if self._lost is not None:
            lost, self._lost, self._received = self._lost, None, None
            lost(why)


def _let_go(connection: socket.socket, pidfd: int) -> None:
    connection.close()
    os.close(pidfd)


def _pid_of(pidfd: int) -> int:
    fd = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, 4096)
    finally:
        os.close(fd)
    for line in found.splitlines():
        if line.startswith(b"Pid:"):
            return int(line.split()[1])
    raise EngineCrashed("the kernel does not tell which process was handed over")
