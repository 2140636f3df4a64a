"""Passes messages between a client and the shared server, and outlives it."""

from __future__ import annotations

import os
import select
import time
from _socket import MSG_DONTWAIT, SHUT_WR, socket

from ot.relay.place import Unshared, switched_off
from ot.relay.servers import reached, reached_again, say, served_alone
from ot.relay.tracking import Traffic

TYPE_CHECKING = False  # as typing has it, whose import takes longer than the relay takes to start
if TYPE_CHECKING:
    from signal import SIG_DFL, SIGINT, SIGTERM, set_wakeup_fd, signal
else:
    from _signal import SIG_DFL, SIGINT, SIGTERM, set_wakeup_fd, signal

CHUNK = 1 << 16
MAX_LINE = 17 << 20
"""A longer line is passed on as it comes: the server refuses it by itself."""
MOST_ENDS, ENDS_SECONDS = 3, 60.0
"""A server that ends so often in that time is not started any more."""
END_SECONDS = 5.0
"""How long the last answers may take, once the client has closed its end or the relay was asked to end."""


def relay(arguments: list[str]) -> bool:
    """Serve the client by the shared server until it goes; False, and nothing read, if it is to be served alone."""
    try:
        _require_shareable()
        server = reached(arguments)
    except (Unshared, OSError) as error:
        say(f"served alone: {error}")
        return False
    Relay(arguments, server).run()
    return True


def _require_shareable() -> None:
    if why := switched_off():
        raise Unshared(why)
    if os.isatty(0):
        raise Unshared("standard input is a terminal")


class Relay:
    """One client, and whichever server it is connected to."""

    def __init__(self, arguments: list[str], server: socket) -> None:
        """Pass on what comes on fd 0 and what *server* answers."""
        self._arguments = arguments
        self._server: tuple[socket, socket] | None = (server, server)
        """Where requests go, and where answers come from."""
        self._is_alone = False
        self._traffic = Traffic()
        self._outgoing = bytearray()
        self._from_client, self._from_server = bytearray(), bytearray()
        self._long_line = ""
        """Whether a line that is too long to be kept is passed on, or dropped because its start was lost."""
        self._ends: list[float] = []
        self._input_ended = False
        self._until: float | None = None
        """When the relay ends at the latest, once the client has closed its end or a signal has come."""
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        set_wakeup_fd(wake)
        for number in (SIGTERM, SIGINT):
            signal(number, self._asked_to_end)

    def run(self) -> None:
        """Pass messages until the client goes."""
        while (left := self._seconds_left()) is None or left > 0:
            poll = select.poll()
            for fd, events in self._awaited().items():
                poll.register(fd, events)
            for fd, event in poll.poll(None if left is None else left * 1000):
                self._turn(fd, event)

    def _awaited(self) -> dict[int, int]:
        """Return what to wait for; the server comes before the client, whose next line may be for another server."""
        awaited = {self._woken: select.POLLIN}
        if self._server:
            requests, answers = self._server
            awaited[answers.fileno()] = select.POLLIN
            if self._outgoing:
                awaited[requests.fileno()] = awaited.get(requests.fileno(), 0) | select.POLLOUT
        if self._until is None and not self._outgoing:
            awaited[0] = select.POLLIN
        return awaited

    def _turn(self, fd: int, event: int) -> None:
        if fd == 0:
            self._read_client()
        elif fd == self._woken:
            os.read(fd, CHUNK)
        elif event & ~select.POLLOUT:
            self._read_server()
        else:
            self._send()

    def _seconds_left(self) -> float | None:
        if self._until is None:
            return None
        return self._until - time.monotonic() if self._server and (self._traffic.open or self._outgoing) else 0.0

    def _asked_to_end(self, number: int, _frame: object) -> None:
        signal(number, SIG_DFL)
        self._until = time.monotonic() + END_SECONDS

    def _read_client(self) -> None:
        try:
            chunk = os.read(0, CHUNK)
        except OSError:
            chunk = b""  # closed before the start, or a terminal that has gone
        if not chunk:
            self._input_ended, self._until = True, time.monotonic() + END_SECONDS
            self._send()
            return
        head, newline, rest = chunk.rpartition(b"\n")
        if newline:
            for line in (bytes(self._from_client) + head).split(b"\n"):
                self._take(line + newline)
            self._from_client[:] = rest
        else:
            self._from_client += chunk
        if self._long_line or len(self._from_client) > MAX_LINE:
            self._take_part()
        self._send()

    def _take(self, line: bytes) -> None:
        """Pass on a line, or the end of one that is too long to be kept; a server that has gone is replaced first."""
        long_line, self._long_line = self._long_line, ""
        if long_line:
            self._outgoing += line if long_line == "passed" else b""
        elif line.strip():
            if self._server is None:
                self._reconnect()
            if self._traffic.sent(line):
                self._outgoing += line

    def _take_part(self) -> None:
        self._long_line = self._long_line or ("passed" if self._server else "dropped")
        if self._long_line == "passed":
            self._outgoing += self._from_client
        self._from_client.clear()

    def _send(self) -> None:
        """Send what the server takes now; waiting for it here could make both wait for each other."""
        if not self._server:
            return
        try:
            while self._outgoing:
                del self._outgoing[: self._server[0].send(self._outgoing, MSG_DONTWAIT)]
            if self._input_ended:
                self._server[0].shutdown(SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # it has gone, which its end of the connection tells

    def _read_server(self) -> None:
        try:
            chunk = self._server[1].recv(CHUNK, MSG_DONTWAIT) if self._server else b""
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._lost()
            return
        head, newline, rest = chunk.rpartition(b"\n")
        if newline:
            lines = (bytes(self._from_server) + head).split(b"\n")
            self._from_server[:] = rest
            self._write(b"".join(self._traffic.received(line + newline) for line in lines))
        else:
            self._from_server += chunk

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                try:
                    rest = rest[os.write(1, rest) :]
                except BlockingIOError:  # the client has made its end of the pipe so
                    select.select([], [1], [])
        except OSError:
            self._until = 0.0  # the client has gone

    def _lost(self) -> None:
        """Tell the client what the server leaves unanswered; another one is started when there is something to ask."""
        for end in self._server or ():
            end.close()
        self._server = None
        self._from_server.clear()
        self._outgoing.clear()
        self._long_line = self._long_line and "dropped"
        self._write(self._traffic.lost())
        if self._is_alone:
            self._until = 0.0
        elif self._until is None and self._traffic.open:
            self._reconnect()

    def _reconnect(self) -> None:
        now = time.monotonic()
        self._ends = [*(then for then in self._ends if now - then < ENDS_SECONDS), now]
        try:
            if len(self._ends) >= MOST_ENDS:
                raise Unshared("the shared server ended too often")
            server = reached_again(self._arguments)
            self._server = server, server
        except (Unshared, OSError) as error:
            say(f"served alone from now on: {error}")
            self._be_alone()
        self._outgoing += self._traffic.replayed()

    def _be_alone(self) -> None:
        self._is_alone = True
        try:
            self._server = served_alone(self._arguments)
        except OSError as error:
            say(f"no server can be started: {error}")
            self._until = 0.0
