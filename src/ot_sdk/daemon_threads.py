"""DaemonThreads: threads that are used again and never keep the process alive."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[], None]


class DaemonThreads:
    """Runs jobs at once, each in a thread of its own; who calls sees to it that there are not too many."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._numbers = itertools.count(1)
        self._idle = 0
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """Run *job* in a thread.

        Raises:
            RuntimeError: The system gives no more threads.
        """
        with self._lock:
            idle = self._idle
            self._idle = max(0, idle - 1)
        if not idle:
            threading.Thread(target=self._run, name=f"{self._name}-{next(self._numbers)}", daemon=True).start()
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - a lost thread would be a call that never ends
                sys.__excepthook__(type(error), error, error.__traceback__)
            with self._lock:
                self._idle += 1
