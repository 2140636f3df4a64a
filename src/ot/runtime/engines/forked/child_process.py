"""Child: the server's end of one forked child, from its birth to whatever ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ot.errors import EngineCrashed
from ot.runtime.engines.forked.cgroup import JailGroup
from ot.runtime.engines.forked.jail.channel import HEADER, frame

TURN_SECONDS = 0.05
LAST_TURNS = 5
"""How long a child that seems to end may take to: its last words and its end.

It is counted in turns of the event loop, so that one long turn is not taken for the child's silence.
"""
HOW_TURNS = 100
"""How long its zygote may take, from then on, to tell how it ended: a busy machine may delay it by seconds."""
LOWER_BY = 10
"""In the kernel's steps of niceness: who yields gets a tenth of the processor beside one that does not."""

Told = Callable[[str], None]
TellHow = Callable[[Told], None]
"""Tells, once it is known, how the child ended."""


@dataclass(frozen=True)
class Death:
    """How a child ended under a program."""

    how: str
    unread: bool = False
    """Whether it left unread something that it was sent."""
    no_room: bool = False
    """Whether the server had no memory for what it sent."""


class Child(asyncio.Protocol):
    """One forked child and the messages from it; it is used for one run, or for one session, and never again."""

    def __init__(self, pidfd: int, tell_how: TellHow, group: JailGroup | None = None) -> None:
        self._pidfd = pidfd
        self._tell_how = tell_how
        self._group = group
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._most = 0
        self._transport: asyncio.WriteTransport | None = None
        self._received: Callable[[int, bytes], None] | None = None
        self._lost: Callable[[Death], None] | None = None
        self._dead = self._hung_up = self._unread = self._resting = False
        self._patience: asyncio.TimerHandle | None = None
        self._turns = 0
        self.pid = _pid_of(pidfd)
        self.gone = False
        self._loop.add_reader(pidfd, self._handle_death)

    @classmethod
    async def connect(
        cls, connection: socket.socket, pidfd: int, tell_how: TellHow, group: JailGroup | None = None
    ) -> Child:
        """Return the child at the other end of *connection*."""
        child = cls(pidfd, tell_how, group)
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
        self, received: Callable[[int, bytes], None], lost: Callable[[Death], None], most_bytes: int, start: bytes
    ) -> None:
        """Give the child its program, and hand what it sends to *received* until it is *lost*."""
        if self.gone:
            return lost(Death("it had ended before", unread=True))
        self._received, self._lost, self._most = received, lost, most_bytes
        if self._resting:
            self._resting = not self._signal(signal.SIGCONT)
        return self.send(0, start)

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
        """Return whether its process is still there, also when its end is not yet noticed."""
        if self.gone:
            return False
        death = select.poll()
        death.register(self._pidfd, select.POLLIN)
        return not death.poll(0)

    def _signal(self, number: int) -> bool:
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except OSError:
            return False
        return True

    def cpu_seconds(self) -> float:
        """Return the child's processor time, or None for a dead one."""
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
        if self._patience is not None:
            self._patience.cancel()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            self._signal(signal.SIGKILL)
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
        try:
            if not self._buffer and len(data) >= HEADER.size and self._received is not None:
                size, number = HEADER.unpack_from(data)
                if size <= self._most and len(data) == HEADER.size + size:  # as nearly all are
                    return self._received(number, data[HEADER.size :])
            self._take(data)
        except MemoryError:
            self._buffer = bytearray()
            self._give_up("its message was too large for the server's memory", no_room=True)
        return None

    def _take(self, data: bytes) -> None:
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
            # Nobody reads any more: further output must not pile up here.
            self.kill()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that nothing more comes; an error says that the child had not read all that it was sent."""
        self._hung_up, self._unread = True, isinstance(exc, ConnectionError)
        self._ends()

    def _handle_death(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._dead = True
        self.pause(False)  # its last words may be its value
        self._ends()

    # ---------------------------------------------------------------- its end

    def _ends(self) -> None:
        """Tell whoever uses it how it ended, once it is dead and all that it sent is read, or after a short while."""
        self.gone = True
        if self._lost is None:
            return
        if self._patience is None:
            self._wait_a_turn()
        if self._dead and self._hung_up:
            self._turns -= HOW_TURNS
            self._tell_how(self._give_up)

    def _wait_a_turn(self) -> None:
        self._turns += 1
        then = self._wait_a_turn if self._turns < LAST_TURNS else self._end_unexplained
        self._patience = self._loop.call_later(TURN_SECONDS, then)

    def _end_unexplained(self) -> None:
        self._give_up("it ended" if self._dead else "it closed its connection")

    def _give_up(self, how: str, *, no_room: bool = False) -> None:
        self.gone = True
        if self._lost is not None:
            lost, self._lost, self._received = self._lost, None, None
            lost(Death(how, self._unread, no_room))


def _pid_of(pidfd: int) -> int:
    fd = os.open(f"/proc/self/fdinfo/{pidfd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, 4096)
    finally:
        os.close(fd)
    for line in found.splitlines():
        if line.startswith(b"Pid:"):
            return int(line.split()[1])
    raise EngineCrashed("the kernel did not say which process was handed over")
