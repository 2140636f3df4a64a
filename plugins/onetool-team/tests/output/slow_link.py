"""A link to a server that a test slows down: every piece waits before it is passed on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class SlowLink:
    """Passes bytes on between a port of its own and another one."""

    def __init__(self, target: int) -> None:
        """Listen, and pass on to *target* at once."""
        self.seconds = 0.0
        """How long every piece waits."""
        self._target = target
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._ended.is_set():
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._ends += [near, far]
                self._start(self._pass, near, far)
                self._start(self._pass, far, near)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._ended.wait(self.seconds)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Pass nothing on any more."""
        self._ended.set()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for end in self._ends:
            end.close()


@contextmanager
def slow_link(target: int) -> Generator[SlowLink]:
    """Yield a link that ends with the block."""
    link = SlowLink(target)
    try:
        yield link
    finally:
        link.end()
