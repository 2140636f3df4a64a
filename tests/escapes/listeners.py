"""Listeners on this machine that no program may reach, and that remember who did."""

from __future__ import annotations

import os
import socket
import threading
from types import TracebackType
from typing import Self

from pace import PATIENCE

ABSTRACT = "sbx-canary"
"""As the corpus calls the abstract socket; each has a name of its own, for tests that run side by side."""


class Listeners:
    """A TCP port on the loopback and an abstract Unix socket."""

    def __init__(self) -> None:
        self._sockets = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.name = f"{ABSTRACT}-{os.getpid()}"
        self._sockets[1].bind(f"\0{self.name}")
        self._sockets[1].listen()
        self.port: int = self._sockets[0].getsockname()[1]
        self.hits = 0
        self.hit = threading.Condition()
        self._threads = [threading.Thread(target=self._accept, args=(s,), daemon=True) for s in self._sockets]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self._sockets:
            # Closing alone would not wake the thread that waits in accept().
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def named(self, code: str) -> str:
        """Return *code* of the corpus with the names of these listeners."""
        return code.replace("{PORT}", str(self.port)).replace(ABSTRACT, self.name)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.close()
            with self.hit:
                self.hits += 1
                self.hit.notify_all()
