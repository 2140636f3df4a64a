"""Passes messages between a client and a server, and ends only when the client does."""

from __future__ import annotations

import os
import select
import time
from _socket import MSG_DONTWAIT, SHUT_WR, socket

from ot.relay.place import Unshared, why_switched_off
from ot.relay.servers import Servers, bury_ended, say
from ot.relay.tracking import KEPT_QUESTION, Traffic
from ot.relay.tries import Tries, at_random

TYPE_CHECKING = False  # as typing has it, whose import takes longer than the relay takes to start
if TYPE_CHECKING:
    from signal import SIG_DFL, SIGINT, SIGTERM, set_wakeup_fd, signal
else:
    from _signal import SIG_DFL, SIGINT, SIGTERM, set_wakeup_fd, signal

CHUNK = 1 << 16
MAX_LINE = 17 << 20
"""A longer line is passed on as it comes: the server refuses it by itself."""
MAX_HELD = 100
"""So many lines are read while no server takes them."""
LOOK_SECONDS = 3.0
"""How long a client that is served alone and idle waits before it looks for the shared server once more."""
END_SECONDS = 5.0
"""How long the last answers may take, once the client has closed its end or the relay was asked to end."""


def relay(arguments: list[str]) -> bool:
    """Serve the client until it goes; False, and nothing read, if it is to be served alone for good."""
    try:
        _require_shareable()
        servers = Servers(arguments)
        tries = Tries(servers)
        server = tries.first_server()
    except (Unshared, OSError) as error:
        say(f"served alone: {error}")
        return False
    Relay(tries, server, is_successor=servers.is_successor).run()
    return True


def _require_shareable() -> None:
    if why := why_switched_off():
        raise Unshared(why)
    if os.isatty(0):
        raise Unshared("standard input is a terminal")


class Relay:
    """One client, and whichever server it is connected to."""

    def __init__(self, tries: Tries, server: tuple[socket, socket] | None, *, is_successor: bool = False) -> None:
        """Pass on what comes on fd 0 and what *server* answers; *tries* give another one where there is need.

        The client of a *successor* is a relay itself, which does all that must outlive a server.
        """
        self._is_successor = is_successor
        self._server = server
        """Where requests go, and where answers come from."""
        self._takes = self._works = server is not None
        """Whether the server takes requests, and whether it has answered any: before that it is sent greetings only,
        so that nothing is lost with a server that could not start."""
        self._traffic = Traffic()
        self._outgoing = bytearray()
        self._held: list[bytes] = []
        """Lines for a server that works, while there is none."""
        self._told: list[bytes] = []
        """What the server has been told of the client before its first request."""
        self._from_client, self._from_server = bytearray(), bytearray()
        self._long_line = ""
        """Whether a line that is too long to be kept is passed on, or dropped because its start was lost."""
        self._input_ended = False
        self._until: float | None = None
        """When the relay ends at the latest, once the client has closed its end or a signal has come."""
        self._tries = tries
        self._due: float | None = None
        """When a server is tried again; or the shared one, where a server works that is the client's alone."""
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        set_wakeup_fd(wake)
        for number in (SIGTERM, SIGINT):
            signal(number, self._handle_signal)

    def run(self) -> None:
        """Pass messages until the client goes."""
        while (left := self._seconds_left()) is None or left > 0:
            poll = select.poll()
            for fd, events in self._build_poll().items():
                poll.register(fd, events)
            waits = [seconds for seconds in (left, self._seconds_to_due()) if seconds is not None]
            for fd, event in poll.poll(min(waits) * 1000 if waits else None):
                self._turn(fd, event)
            if self._seconds_to_due() == 0.0:
                self._due = None
                self._ask_what_is_kept() if self._works else self._try_server()

    def _build_poll(self) -> dict[int, int]:
        """Return what to wait for; the server comes before the client, whose next line may be for another server."""
        awaited = {self._woken: select.POLLIN}
        if self._server:
            requests, answers = self._server
            awaited[answers.fileno()] = select.POLLIN
            if self._outgoing:
                awaited[requests.fileno()] = awaited.get(requests.fileno(), 0) | select.POLLOUT
        if self._until is None and not self._outgoing and len(self._held) < MAX_HELD:
            awaited[0] = select.POLLIN
        return awaited

    def _turn(self, fd: int, event: int) -> None:
        if fd == 0:
            self._read_client()
        elif fd == self._woken:
            os.read(fd, CHUNK)
        elif self._server is None or fd not in (self._server[0].fileno(), self._server[1].fileno()):
            pass  # of a server that another turn has let go of
        elif event & ~select.POLLOUT:
            self._read_server()
        else:
            self._send()

    def _seconds_left(self) -> float | None:
        if self._until is None:
            return None
        has_work = self._traffic.open or self._outgoing or self._held
        has_server = self._server or self._due is not None
        return self._until - time.monotonic() if has_work and has_server else 0.0

    def _seconds_to_due(self) -> float | None:
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def _handle_signal(self, number: int, _frame: object) -> None:
        signal(number, SIG_DFL)
        self._until = time.monotonic() + END_SECONDS

    # ---------------------------------------------------------------- from the client

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
        if self._held and self._server is None and self._due is None:
            self._try_server()
        self._send()

    def _take(self, line: bytes) -> None:
        """Pass on a line, or the end of one that is too long to be kept; what no server takes yet is held."""
        long_line, self._long_line = self._long_line, ""
        if long_line:
            self._outgoing += line if long_line == "passed" else b""
        elif line.strip() and self._traffic.sent(line):
            if self._takes:
                self._outgoing += line
            else:
                self._held.append(line)

    def _take_part(self) -> None:
        self._long_line = self._long_line or ("passed" if self._takes else "dropped")
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
            if self._input_ended and not self._held:
                self._server[0].shutdown(SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # it has gone, which its end of the connection tells

    # ---------------------------------------------------------------- from the server

    def _read_server(self) -> None:
        try:
            chunk = self._server[1].recv(CHUNK, MSG_DONTWAIT) if self._server else b""
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._handle_loss()
            return
        head, newline, rest = chunk.rpartition(b"\n")
        if newline:
            lines = (bytes(self._from_server) + head).split(b"\n")
            self._from_server[:] = rest
            self._write(b"".join(self._traffic.receive(line + newline) for line in lines))
            self._handle_answer()
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

    def _handle_answer(self) -> None:
        """Go on where an answer says that a server works, or what it keeps."""
        if not self._works and self._traffic.is_greeted():
            self._works = True
            seconds = self._tries.succeed()
            self._due = None if seconds is None else time.monotonic() + seconds
            self._begin_requests()
        kept, self._traffic.kept = self._traffic.kept, None
        if kept == {"kept": []} and self._is_idle():
            self._return_to_shared()

    def _handle_loss(self) -> None:
        """Tell the client what the server leaves unanswered; another one is started when there is something to ask."""
        took, worked = self._takes, self._works
        self._let_go()
        if self._is_successor:
            self._until = 0.0  # the relay that started this one does the rest
            return
        if took:
            self._write(self._traffic.fail_unrepeatable())
            self._held = self._traffic.list_repeatable()
        if not worked:
            self._fail("it ended before it answered")
        elif self._held and self._until is None:
            self._try_server()

    def _let_go(self) -> None:
        for end in self._server or ():
            end.close()
        self._server, self._takes, self._works, self._due = None, False, False, None
        self._from_server.clear()
        self._outgoing.clear()
        self._long_line = self._long_line and "dropped"
        bury_ended()

    # ---------------------------------------------------------------- another server

    def _try_server(self) -> None:
        """Connect to a server, and let it show that it answers; where that fails, another try follows."""
        try:
            self._greet(self._tries.next_server())
        except (Unshared, OSError) as error:
            self._fail(str(error))

    def _fail(self, why: str) -> None:
        """Try again a little later; or answer what the client has asked with an error, and try again when it asks."""
        say(f"no server yet: {why}")
        seconds = self._tries.pause(is_urgent=bool(self._held))
        if seconds is not None:
            self._due = time.monotonic() + seconds
        elif self._is_successor:
            self._until = 0.0  # as above
        else:
            self._held = []
            self._write(self._traffic.give_up(why))

    def _greet(self, server: tuple[socket, socket]) -> None:
        """Tell a new server who the client is."""
        self._server = server
        self._told = self._traffic.begin_greeting()
        self._outgoing += b"".join(self._told)
        if self._traffic.is_greeted():  # nothing of it will be answered
            self._begin_requests()
        self._send()

    def _begin_requests(self) -> None:
        self._takes = True
        self._outgoing += b"".join(line for line in self._held if line not in self._told)
        self._held = []
        self._send()

    # ---------------------------------------------------------------- back to the shared server

    def _is_idle(self) -> bool:
        buffers = (self._outgoing, self._from_client, self._from_server, self._held)
        return self._works and self._until is None and not any(buffers) and self._traffic.is_idle()

    def _ask_what_is_kept(self) -> None:
        """Ask a server that is the client's alone what would be lost with it."""
        self._due = time.monotonic() + at_random(LOOK_SECONDS)
        if self._is_idle():
            self._outgoing += KEPT_QUESTION
            self._send()

    def _return_to_shared(self) -> None:
        try:
            server = self._tries.rejoin_shared()
        except (Unshared, OSError):
            return  # it is looked for again
        if server:
            self._let_go()
            self._greet(server)
