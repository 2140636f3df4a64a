"""DuePings: a ping every five milliseconds, each timed from the moment when it was due."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from mcp_wire import WireServer

EVERY_SECONDS = 0.005
LEAST = 100
ANSWER_SECONDS = 60.0


class DuePings:
    """Pings a server from the beginning of a block to its end, and at least a hundred times."""

    def __init__(self, wire: WireServer, least: int = LEAST) -> None:
        """Ping *wire*; a server that cannot take a ping has kept it waiting, too."""
        self._wire = wire
        self._least = least
        self._over = threading.Event()
        self._sent: list[tuple[Any, float]] = []
        self._thread = threading.Thread(target=self._ping, daemon=True)
        self.worst = 0.0
        """The longest that a ping took, in seconds, once the block has ended."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.worst = max(self._wire.wait(number, ANSWER_SECONDS).at - due for number, due in self._sent)

    def _ping(self) -> None:
        first = time.monotonic()
        while len(self._sent) < self._least or not self._over.is_set():
            due = first + len(self._sent) * EVERY_SECONDS
            time.sleep(max(due - time.monotonic(), 0))
            self._sent.append((self._wire.send("ping"), due))
