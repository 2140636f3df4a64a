"""CrashBudget: how often a pack's worker may die before calls are refused for a while."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable

DEATHS = 5
WINDOW_SECONDS = 60.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0


class CrashBudget:
    """Counts deaths on the monotonic clock; when there were too many, each further one doubles the pause."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, deaths: int = DEATHS) -> None:
        """Allow *deaths* in a minute."""
        self._clock = clock
        self._most = deaths
        self._deaths: deque[float] = deque()
        self._pause = FIRST_PAUSE
        self._closed_until = 0.0
        self.last_words = ""

    @property
    def seconds_closed(self) -> float:
        """How long calls are still refused; nothing when they are not."""
        return max(self._closed_until - self._clock(), 0.0)

    def died(self, last_words: str) -> None:
        """Count a death."""
        now = self._clock()
        self.last_words = last_words
        self._deaths.append(now)
        while self._deaths and now - self._deaths[0] > WINDOW_SECONDS:
            self._deaths.popleft()
        # Long pauses leave few deaths within a minute: only a quiet one ends them, see worked().
        if len(self._deaths) >= self._most or self._pause > FIRST_PAUSE:
            # Full jitter keeps several servers from trying again at the same moment.
            self._closed_until = now + self._pause * random.uniform(0.5, 1.0)
            self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def worked(self) -> None:
        """Take note of a call that was answered: the pauses start small again."""
        if not self._deaths or self._clock() - self._deaths[-1] > WINDOW_SECONDS:
            self._pause = FIRST_PAUSE
