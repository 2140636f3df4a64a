"""DiskRoom: how much one person's directory may hold, counted as programs write and measured now and then."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ENTRY_BYTES = 4096
"""What a file or directory takes beside what it holds, and an empty one, too."""
BLOCK_BYTES = 512
LOOK_SECONDS = 30.0
"""After this, what is there is measured again before more is written: other processes write there, too."""
REST = 20
"""So many times as long as measuring took, it is not done again: a full directory must not keep the processor busy."""
FULL = (
    "your directory holds {used:,} of the {most:,} bytes that it may hold (http.workspaces.disk_bytes), and this would "
    "add {size:,}. Delete files that you no longer need, or ask who operates this server for more room"
)


class DiskRoom:
    """The room in one directory. Its method may block: call it in a thread."""

    def __init__(self, directory: Path, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Let *directory* hold *most* bytes; nothing is looked at yet."""
        self._directory = os.fspath(directory)
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._used = 0
        self._look_at = self._rest_until = -1.0

    def take(self, size: int) -> None:
        """Count *size* bytes that are about to be written; none only asks whether there is room for anything.

        Raises:
            OSError: There is no room for them.
        """
        size += ENTRY_BYTES
        with self._lock:
            now = self._clock()
            if now >= self._look_at or (self._used + size > self._most and now >= self._rest_until):
                self._measure(now)
            if self._used + size > self._most:
                raise OSError(FULL.format(used=self._used, most=self._most, size=size))
            self._used += size

    def _measure(self, now: float) -> None:
        self._used = measure(self._directory)
        self._look_at = self._clock() + LOOK_SECONDS
        self._rest_until = self._clock() + REST * (self._clock() - now)


def measure(directory: str) -> int:
    """Return how many bytes of the disk everything below *directory* takes; no link is followed."""
    used, left = 0, [directory]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as found:  # it is gone meanwhile, or closed to us
            for entry in found:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    used += ENTRY_BYTES + entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return used
