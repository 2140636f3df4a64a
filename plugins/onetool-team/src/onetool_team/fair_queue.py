"""FairQueue: everyone's runs wait in a line of their own, and the lines are served in turn."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from onetool_team.settings import Quotas

MOST_LINES = 1000
"""Above this, those of principals who have nothing under way are forgotten."""


class NoTurn(Exception):
    """A run is not admitted; the text says why and what to do, for whoever sent it."""

    def __init__(self, why: str, seconds: float) -> None:
        """Refuse because of *why*; after *seconds* it may be tried again."""
        super().__init__(why)
        self.seconds = seconds


@dataclass(slots=True)
class _Line:
    """One principal's runs: those under way, those that wait, and how many may begin at once."""

    quotas: Quotas
    starts: float
    at: float = field(default_factory=time.monotonic)
    under_way: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque[asyncio.Future[None]])


class FairQueue:
    """Lets runs begin: so many in all, so many of each principal, and of each no faster than its quota for a while."""

    def __init__(self, quotas: Callable[[], Quotas], places: Callable[[], int]) -> None:
        """Keep to *quotas* for each principal, and to *places* for all together, both asked for each time."""
        self._quotas = quotas
        self._places = places
        self._lines: dict[str, _Line] = {}
        self._order: dict[str, None] = {}
        """Who has a run that waits, the next one first."""
        self.under_way = 0
        """How many runs are under way."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many runs wait."""
        return sum(len(self._lines[principal].waiting) for principal in self._order)

    def try_enter(self, principal: str, quotas: Quotas | None = None) -> bool:
        """Return whether a run of *principal* begins at once; whoever got True must leave.

        *quotas* are the principal's own, where they are not those of everybody.
        """
        line = self._line(principal, quotas)
        if line.waiting or not self._may_begin(line):
            return False
        self._begin(line)
        return True

    async def enter(self, principal: str, quotas: Quotas | None = None) -> None:
        """Return when a run of *principal* may begin; whoever got here must leave. *quotas* are as above.

        Raises:
            NoTurn: Too many of them wait already, or it has waited too long.
        """
        line = self._line(principal, quotas)
        quotas = line.quotas
        if len(line.waiting) >= quotas.waiting:
            raise NoTurn(FULL.format(most=quotas.waiting), 1.0)
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        self._order.setdefault(principal)
        self._hand_out()
        try:
            async with asyncio.timeout(quotas.queue_seconds):
                await turn
        except TimeoutError:
            self._give_up(principal, turn)
            raise NoTurn(TOO_LONG.format(seconds=quotas.queue_seconds), quotas.queue_seconds) from None
        except BaseException:
            self._give_up(principal, turn)
            raise

    def leave(self, principal: str) -> None:
        """Note that a run of *principal* is over."""
        line = self._lines[principal]
        line.under_way -= 1
        self.under_way -= 1
        self._hand_out()

    # ---------------------------------------------------------------- whose turn it is

    def _line(self, principal: str, given: Quotas | None) -> _Line:
        quotas = given or self._quotas()
        if principal not in self._lines:
            if len(self._lines) >= MOST_LINES:
                self._forget()
            self._lines[principal] = _Line(quotas, _burst(quotas))
        line = self._lines[principal]
        line.quotas = quotas
        return line

    def _forget(self) -> None:
        for name, line in list(self._lines.items()):
            if not line.under_way and not line.waiting and self._starts(line) >= _burst(line.quotas):
                del self._lines[name]

    def _starts(self, line: _Line) -> float:
        """Return how many runs of the line may begin now; they come back as the quota of a minute says."""
        now = time.monotonic()
        gained = (now - line.at) * line.quotas.runs_per_minute / 60
        line.starts, line.at = min(_burst(line.quotas), line.starts + gained), now
        return line.starts

    def _may_begin(self, line: _Line) -> bool:
        room = self.under_way < self._places() and line.under_way < line.quotas.in_flight
        return room and self._starts(line) >= 1

    def _begin(self, line: _Line) -> None:
        line.starts -= 1
        line.under_way += 1
        self.under_way += 1

    def _hand_out(self) -> None:
        """Let runs begin that wait, one of each principal in turn."""
        while chosen := next((name for name in self._order if self._may_begin(self._lines[name])), ""):
            line = self._lines[chosen]
            del self._order[chosen]
            turn = line.waiting.popleft()
            if line.waiting:
                self._order[chosen] = None
            if not turn.done():
                self._begin(line)
                turn.set_result(None)
        self._look_again()

    def _give_up(self, principal: str, turn: asyncio.Future[None]) -> None:
        """Take a run out of its line; one whose turn had just come gives it back."""
        line = self._lines[principal]
        if turn.done() and not turn.cancelled():
            self.leave(principal)
        elif turn in line.waiting:
            line.waiting.remove(turn)
            if not line.waiting:
                self._order.pop(principal, None)

    def _look_again(self) -> None:
        """Set a timer for the next run that only its principal's pace holds up."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        waits = [self._lines[name] for name in self._order]
        paced = [line for line in waits if line.under_way < line.quotas.in_flight]
        soonest = min(((1 - line.starts) * 60 / line.quotas.runs_per_minute for line in paced), default=math.inf)
        if self.under_way < self._places() and soonest < math.inf:
            self._timer = asyncio.get_running_loop().call_later(max(soonest, 0.001), self._hand_out)


def _burst(quotas: Quotas) -> float:
    return float(quotas.in_flight + quotas.waiting)


FULL = (
    "{most} of your runs are waiting for their turn already (http.quotas.waiting), so this one was not taken. "
    "Send it again when some of them have ended, or do several steps in one program"
)
TOO_LONG = (
    "the run has waited {seconds:g} s for its turn and was not begun: other runs of yours, or of everyone, take all "
    "places. Send it again later, or do several steps in one program"
)
