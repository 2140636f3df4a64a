"""Samples memory, processes and threads of a server and all below it, while a program runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pace import PATIENCE
from server_process import process_tree

SAMPLE_SECONDS = 0.01


@dataclass(frozen=True)
class Usage:
    """What a server uses, alone and with its processes."""

    host_rss_mb: float = 0.0
    tree_rss_mb: float = 0.0
    processes: int = 0
    threads: int = 0

    def most(self, other: Usage) -> Usage:
        """Return the larger of each figure."""
        return Usage(
            max(self.host_rss_mb, other.host_rss_mb),
            max(self.tree_rss_mb, other.tree_rss_mb),
            max(self.processes, other.processes),
            max(self.threads, other.threads),
        )

    def above(self, baseline: Usage) -> Usage:
        """Return how much more it is than *baseline*."""
        return Usage(
            self.host_rss_mb - baseline.host_rss_mb,
            self.tree_rss_mb - baseline.tree_rss_mb,
            self.processes - baseline.processes,
            self.threads - baseline.threads,
        )


def usage_of(pid: int) -> Usage:
    """Return what the server *pid* uses now."""
    tree = process_tree(pid)
    alone = sum(stat.rss_mb for stat in tree if stat.pid == pid)
    return Usage(alone, sum(s.rss_mb for s in tree), len(tree), sum(s.threads for s in tree))


class ProcessSampler:
    """Keeps the highest figures between entering and leaving its block."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.baseline = usage_of(pid)
        self.peak = self.baseline

    @property
    def growth(self) -> Usage:
        """How far the figures rose above those before the block."""
        return self.peak.above(self.baseline)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(PATIENCE)

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            self.peak = self.peak.most(usage_of(self._pid))
