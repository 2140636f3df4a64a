"""Real ``onetool worker`` processes for tests: started, killed, frozen."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import warm_start
from faults.watched import Place
from pace import PATIENCE, patiently

START = "import sys; from ot.entry import main; sys.argv[0] = 'onetool'; main()"


@dataclass
class WorkerProcess:
    """A worker process; use ``start``."""

    process: Any
    place: Place
    _errors: Any = field(repr=False)
    told: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def start(cls, root: Path, config: str, *arguments: str, ready: bool = True) -> Self:
        """Start a worker with *config* below *root*, and wait until it is ready."""
        place = Place.make(root, config)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        process = warm_start.start(
            [sys.executable, "-c", START, "worker", "--json", *arguments],
            cwd=place.cwd,
            env=place.environment(),
            stderr=errors.fileno(),
            memory_bytes=None,
            also=warm_start.TEAM,
        )
        worker = cls(process, place, errors)
        if ready:
            worker.wait_until_ready()
        return worker

    def wait_until_ready(self) -> None:
        """Return once it has said what it does."""
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], self.stderr_text()
        line = self.process.stdout.readline()
        assert line, self.stderr_text()
        self.told = json.loads(line)

    def stderr_text(self) -> str:
        """Return what it has written there so far."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def wait_for_stderr(self, text: str) -> None:
        """Return once it has written *text*."""
        for _ in patiently():
            if text in self.stderr_text():
                return
        raise AssertionError(self.stderr_text())

    def signal(self, number: int) -> None:
        """Send a signal to the worker alone."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill the worker alone, as a machine that runs out of memory does; what it started ends by itself."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()
