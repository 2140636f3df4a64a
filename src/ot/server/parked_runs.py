"""ParkedRuns: programs that wait in their engine for an answer that only another request can bring."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from ot.errors import CannotAsk
from ot.execution.caller import Answer, AskUser, Question
from ot.runtime.reply import Reply
from ot.runtime.run_events import RunEvent, TellEvent
from ot.server.elicitation import OpenCall

logger = logging.getLogger(__name__)

MOST = 32
"""Each parked run holds a process of the engine."""
"""Where many share a server; how many of them one principal may have is a setting."""
END_SECONDS = 2.0


class NotParked(Exception):
    """No run of this caller waits under this token: it never did, was answered already, or was given up."""

    def __str__(self) -> str:
        return "no run waits for this answer: it was answered already, or given up. Run the program again"


class StartRun(Protocol):
    """Starts a run that asks and tells through what it is handed."""

    def __call__(self, ask: AskUser, tell: TellEvent) -> Awaitable[Reply]:
        """Return the reply."""
        ...


class ParkedRun:
    """One run that goes on in a task of its own, from request to request."""

    def __init__(self, start: StartRun, caller: str, park: Callable[[ParkedRun], str]) -> None:
        """Start it; *park* gives it a token when it comes to a question."""
        self.caller = caller
        self.token = ""
        self.tell: TellEvent | None = None
        """Where the request that is open now wants to hear what happens."""
        self.call = OpenCall()
        """The request that is open now."""
        self._park = park
        self._question: Question | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._asks = asyncio.Event()
        self._task = asyncio.ensure_future(start(self._ask, self._tell))

    async def _ask(self, question: Question) -> Answer:
        token = self.token = self._park(self)
        self._question = question
        self._answer = asyncio.get_running_loop().create_future()
        self._asks.set()
        try:
            return await self._answer
        finally:
            if self.token == token:  # not answered: it is no longer asked here
                self._question, self.token = None, ""
                self._asks.clear()

    def _tell(self, event: RunEvent) -> None:
        if self.tell:
            self.tell(event)

    def answer(self, answer: Answer, token: str) -> None:
        """Let the run go on with *answer*; a question that was answered elsewhere had another *token*."""
        if token == self.token and self._answer and not self._answer.done():
            self._question, self.token = None, ""
            self._asks.clear()
            self._answer.set_result(answer)

    async def turn(self) -> Question | Reply:
        """Return the run's next question, which waits under its token, or its reply."""
        asks = asyncio.ensure_future(self._asks.wait())
        try:
            await asyncio.wait((self._task, asks), return_when=asyncio.FIRST_COMPLETED)
        finally:
            asks.cancel()
        return self._question if self._question and not self._task.done() else self._task.result()

    async def end(self) -> None:
        """End the run, wherever it is."""
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait((self._task,), timeout=END_SECONDS)
        # What it still says is dropped, and must not be reported as never retrieved.
        self._task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


class ParkedRuns:
    """Keeps each parked run under a token that is good once, for its caller, until its time is over."""

    def __init__(self, most: int = MOST) -> None:
        """Park at most *most* runs at the same time."""
        self._most = most
        self.replica = ""
        """The replica that parks them, if there are several: a token names it."""
        self._waiting: dict[str, tuple[ParkedRun, asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def start(self, start: StartRun, caller: str, seconds: float, most: int = MOST) -> ParkedRun:
        """Start a run for *caller*, each of whose questions waits *seconds* before the run is given up.

        *most* runs of this caller may wait at the same time.
        """
        return ParkedRun(start, caller, lambda run: self._park(run, seconds, most))

    def _park(self, run: ParkedRun, seconds: float, most: int) -> str:
        if len(self._waiting) >= self._most:
            raise CannotAsk(f"{self._most} other runs are waiting for an answer already")
        if sum(other.caller == run.caller for other, _ in self._waiting.values()) >= most:
            raise CannotAsk(f"{most} other runs of yours are waiting for an answer already (http.quotas.parked)")
        token = secrets.token_urlsafe(32)
        if self.replica:
            token = f"{self.replica}.{token}"
        timer = asyncio.get_running_loop().call_later(seconds, self._give_up, token)
        self._waiting[token] = (run, timer)
        return token

    def take(self, token: str, caller: str) -> ParkedRun:
        """Return the run that waits under *token*, which is thereby used up.

        Raises:
            NotParked: This caller has no such run.
        """
        run, timer = self._waiting.get(token, (None, None))
        if run is None or timer is None or not hmac.compare_digest(run.caller.encode(), caller.encode()):
            raise NotParked
        del self._waiting[token]
        timer.cancel()
        return run

    async def end(self, run: ParkedRun) -> None:
        """End *run*, parked or not."""
        if run.token in self._waiting:
            self._waiting.pop(run.token)[1].cancel()
        await run.end()

    def _give_up(self, token: str) -> None:
        run, _ = self._waiting.pop(token)
        if run.token != token:
            return  # it was answered elsewhere, and its client has not come back
        logger.warning("nobody answered the question of a run in time; the run is ended")
        task = asyncio.ensure_future(run.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End every run that waits."""
        runs = [run for run, _ in self._waiting.values()]
        await asyncio.gather(*(self.end(run) for run in runs), *self._ending)
