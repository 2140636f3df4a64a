"""SqliteLedger: the ledger of one user's servers: written at once while the file is free, else by a thread."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ot.errors import LedgerUnavailable
from ot.execution.ledger import SETTLE_SECONDS, Effect, HowEnded, UnknownEffect
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.entries import LedgerEntry
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.run_book import Beat, Start
from ot_sdk.replies import is_little

logger = logging.getLogger(__name__)

MAX_TOGETHER = 500
END_SECONDS = 5.0
SOON_SECONDS = 0.05
"""How long the end of a call may wait for the next call, or for the end of the run, to be written with."""
SLOW_SECONDS = 0.1
PAUSE_SECONDS = 5.0
"""How long the thread does everything once a write on the event loop took longer than SLOW_SECONDS."""


type Do = Callable[[LedgerFile], Any]


@dataclass(frozen=True, slots=True)
class _Work:
    """Something to do with the file, and whoever waits for it; nothing to do is to wait for what came before."""

    do: Do | None
    loop: asyncio.AbstractEventLoop | None = None
    answer: asyncio.Future[Any] | None = None


class SqliteLedger:
    """Writes calls and their ends on the event loop, which takes less time than a thread's answer.

    A thread does what may take long: it begins with the first work and opens the file then, syncs, waits for other
    processes, reads. While it has work, everything goes to it, so that all is done in the order in which it came.
    """

    def __init__(self, file: LedgerFile) -> None:
        """Keep everything in *file*, on one event loop."""
        self._file = file
        self._ends: list[Do] = []
        """How calls ended, to be written with whatever is written next."""
        self._writing_soon: asyncio.TimerHandle | None = None
        self._slow_until = 0.0
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        # Each is counted on one thread alone.
        self._given = self._taken = 0
        self._thread = threading.Thread(target=self._write, name="onetool-ledger", daemon=True)

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Wait until it is recorded; return the same call if an earlier one has an unknown effect."""
        do: Do = lambda file: file.send(effect, again)  # noqa: E731 - handed over when it cannot be done here
        if self._is_free and is_little(effect.arguments) and (answer := self._write_here(do)):
            return answer[0]
        return await self._do(do)

    def record_end(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Have it written down how it ended."""
        at = self._file.clock()
        self._ends.append(lambda file: file.write_end(effect, how, value, at))
        if value is not None:  # it may be large, and another start of its run needs it
            self._add_ends()
        elif self._writing_soon is None:
            try:
                self._writing_soon = asyncio.get_running_loop().call_later(SOON_SECONDS, self._write_soon)
            except RuntimeError:  # no event loop runs that could write it later
                self._add_ends()

    def _write_soon(self) -> None:
        self._writing_soon = None
        if self._ends and not (self._is_free and self._write_here()):
            self._add_ends()

    async def settle(self) -> None:
        """Wait until the ends of calls so far are recorded."""
        if self._taken == self._given and (not self._ends or (self._is_free and self._write_here())):
            return
        with suppress(LedgerUnavailable, TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._do(None)

    @property
    def _is_free(self) -> bool:
        """Whether a write on the event loop takes no longer than it must, as far as that is known here."""
        return self._taken == self._given and self._file.is_quick and time.monotonic() >= self._slow_until

    def _write_here(self, do: Do | None = None) -> tuple[Any] | None:
        """Return the result of *do* once it and the ends are written, or None if nothing was.

        Whatever is wrong, a file that somebody else writes at the moment or anything worse, the thread finds it again.
        """
        started = time.monotonic()
        try:
            self._file.begin()
            for end in self._ends:
                end(self._file)
            answer = do(self._file) if do else None
            self._file.commit()
        except Exception:  # noqa: BLE001 - as said
            self._file.roll_back()
            return None
        self._ends.clear()
        now = time.monotonic()
        if now - started > SLOW_SECONDS:
            self._slow_until = now + PAUSE_SECONDS
        return (answer,)

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*."""
        return await self._do(lambda file: file.of_run(principal, run, directory))

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal* whose effect is unknown."""
        return await self._do(lambda file: file.unknown(principal, most, directory))

    async def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run."""
        await self._do(lambda file: file.add(run, most_open))

    async def begin(self, id: str) -> Start | None:
        """Return the next start of a run."""
        return await self._do(lambda file: file.begin_run(id))

    async def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note the packs of a run, or return those noted first."""
        return await self._do(lambda file: file.use_packs(id, start, packs))

    async def beat(self, id: str, start: int) -> Beat:
        """Show that *start* is alive."""
        return await self._do(lambda file: file.beat(id, start))

    async def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask, or go on."""
        await self._do(lambda file: file.ask(id, start, question))

    async def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer a question."""
        return await self._do(lambda file: file.answer(principal, id, number, answer))

    async def end(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how a run ended."""
        return await self._do(lambda file: file.end_run(id, start, end))

    async def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want a run to end."""
        return await self._do(lambda file: file.cancel(principal, id))

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known about a run."""
        return await self._do(lambda file: file.status(principal, id))

    async def runs(self, principal: str, most: int = 100, directory: str | None = None) -> list[RunStatus]:
        """Return the latest runs of *principal*."""
        return await self._do(lambda file: file.runs(principal, most, directory))

    async def list_left_behind(self) -> list[str]:
        """Return the open runs that nobody alive carries out."""
        return await self._do(lambda file: file.list_left_behind())

    async def _do(self, do: Callable[[LedgerFile], Any] | None) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._add_ends()
        self._add(_Work(do, loop, answer))
        try:
            return await answer
        except (sqlite3.Error, OSError) as error:
            raise LedgerUnavailable(str(error)) from error

    def _add_ends(self) -> None:
        for end in self._ends:
            self._add(_Work(end))
        self._ends.clear()

    def _add(self, work: _Work) -> None:
        self._given += 1
        if self._thread.ident is None:
            self._thread.start()
        self._work.put(work)

    # ---------------------------------------------------------------- on the thread

    def _write(self) -> None:
        while (first := self._work.get()) is not None:
            together = [first]
            while len(together) < MAX_TOGETHER and not self._work.empty():
                if (more := self._work.get()) is None:
                    self._take(together)
                    return
                together.append(more)
            self._take(together)

    def _take(self, works: list[_Work]) -> None:
        todo = [work for work in works if work.do]
        with self._file.patient():
            answers = self._together(todo) if todo else []
        self._taken += len(works)
        for work, answer in zip(todo, answers, strict=True):
            _tell(work, answer)
        for work in works:
            if work.do is None:
                _tell(work, None)

    def _together(self, works: list[_Work]) -> list[Any]:
        """Return the answers to *works*, done in one transaction; when it fails, each alone."""
        try:
            self._file.begin()
        except Exception as error:  # noqa: BLE001 - whatever a file can fail with is somebody's answer
            # One wait for a locked file is enough for all of them.
            return [error] * len(works)
        try:
            answers = [work.do(self._file) if work.do else None for work in works]
            self._file.clean()
            self._file.commit()
        except Exception as error:  # noqa: BLE001 - as above
            self._file.roll_back()
            return [error] if len(works) == 1 else [answer for work in works for answer in self._together([work])]
        return answers

    async def health(self) -> Mapping[str, str]:
        """Return the kind of ledger and which failures its entries survive."""
        return {"kind": "file", "survives": "a loss of power" if self._file.power else "a crash or a kill"}

    async def aclose(self) -> None:
        """Let go of the file, in a thread."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Write what is there and let go of the file."""
        self._add_ends()
        if self._thread.ident is not None:
            self._work.put(None)
            self._thread.join(END_SECONDS)
            if not self._thread.is_alive():
                self._file.close()


def _tell(work: _Work, found: Any) -> None:
    if work.answer is None and isinstance(found, Exception):
        logger.warning("the end of a call could not be written to the ledger: %s", found)
    if work.loop is not None and work.answer is not None and not work.loop.is_closed():
        work.loop.call_soon_threadsafe(_settle, work.answer, found)


def _settle(answer: asyncio.Future[Any], found: Any) -> None:
    if answer.done():  # whoever waited was cancelled
        return
    if isinstance(found, BaseException):
        answer.set_exception(found)
    else:
        answer.set_result(found)
