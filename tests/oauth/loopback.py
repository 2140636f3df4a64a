"""An app on a loopback port, in a thread with an event loop of its own, that can go away and come back."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Self

import uvicorn

from free_ports import free_port
from pace import PATIENCE


class LoopbackServer:
    """Serves one app; its port stays the same when it is stopped and started again."""

    def __init__(self, app: Any, lifespan: Any = "off") -> None:
        """Serve *app* on a port that nobody has."""
        self._app = app
        self._lifespan: Any = lifespan
        self._socket = _listening(free_port())  # one that nobody is given while it is away
        self.port: int = self._socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Answer from now on."""
        if self._socket.fileno() < 0:
            self._socket = _listening(self.port)
        options: dict[str, Any] = {"interface": "asgi3", "lifespan": self._lifespan, "ws": "none"}
        self._server = uvicorn.Server(uvicorn.Config(self._app, log_level="error", timeout_keep_alive=60, **options))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not self._server.started:
            assert self._thread.is_alive() and time.monotonic() < end, "the server does not start"
            time.sleep(0.002)

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()
        self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _listening(port: int) -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    found.listen(256)
    return found
