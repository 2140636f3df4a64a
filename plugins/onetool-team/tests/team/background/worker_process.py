"""Real ``onetool worker`` processes for tests: started, killed, frozen."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any, Self

from bed import Bed
from http_server import TeamProcess


class WorkerProcess(TeamProcess):
    """A worker process; use ``start``."""

    told: dict[str, Any]

    @classmethod
    def start(cls, root: Path, config: str, *arguments: str, ready: bool = True) -> Self:
        """Start a worker with *config* below *root*, and wait until it is ready."""
        place = Bed.make(root, config)
        worker = cls(place, "worker", "--json", *arguments)
        if ready:
            worker.wait_until_ready()
        return worker

    def wait_until_ready(self) -> None:
        """Return once it has said what it does."""
        self.told = self.read_told()

    def die(self) -> None:
        """Kill the worker alone, as a machine that runs out of memory does; what it started ends by itself."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.wait_for_end()

    def close(self, timeout: float = 0.0) -> int:
        """End it and all that it has started, at once."""
        return self.kill()
