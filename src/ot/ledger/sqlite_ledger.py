"""SqliteLedger: the ledger of one user's servers; one thread writes, and what comes together is written together."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ot.errors import LedgerUnavailable
from ot.execution.ledger import SETTLE_SECONDS, Effect, HowEnded, UnknownEffect
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.entries import LedgerEntry
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.run_book import Beat, Start

logger = logging.getLogger(__name__)

MAX_TOGETHER = 500
END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Work:
    """Something to do with the file, and whoever waits for it; nothing to do is to wait for what came before."""

    do: Callable[[LedgerFile], Any] | None
    loop: asyncio.AbstractEventLoop | None = None
    answer: asyncio.Future[Any] | None = None


class SqliteLedger:
    """Hands work to a thread, which begins with the first and opens the file then."""

    def __init__(self, file: LedgerFile) -> None:
        """Keep everything in *file*."""
        self._file = file
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        # Each is counted on one thread alone.
        self._ends_given = self._ends_taken = 0
        self._thread = threading.Thread(target=self._write, name="onetool-ledger", daemon=True)

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Return when it is written down, or the same call whose effect is unknown."""
        return await self._done(lambda file: file.send(effect, again))

    def ended(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Have it written down how it ended."""
        self._ends_given += 1
        self._add(_Work(lambda file: file.ended(effect, how, value)))

    async def settled(self) -> None:
        """Return when it is written down how calls ended so far."""
        if self._ends_taken < self._ends_given:
            with suppress(LedgerUnavailable, TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._done(None)

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*."""
        return await self._done(lambda file: file.of_run(principal, run, directory))

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal* whose effect is unknown."""
        return await self._done(lambda file: file.unknown(principal, most, directory))

    async def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run."""
        await self._done(lambda file: file.add(run, most_open))

    async def begin(self, id: str) -> Start | None:
        """Return the next start of a run."""
        return await self._done(lambda file: file.begin_run(id))

    async def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note the packs of a run, or return those noted first."""
        return await self._done(lambda file: file.use_packs(id, start, packs))

    async def beat(self, id: str, start: int) -> Beat:
        """Show that *start* is alive."""
        return await self._done(lambda file: file.beat(id, start))

    async def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask, or go on."""
        await self._done(lambda file: file.ask(id, start, question))

    async def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer a question."""
        return await self._done(lambda file: file.answer(principal, id, number, answer))

    async def end(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how a run ended."""
        return await self._done(lambda file: file.end_run(id, start, end))

    async def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want a run to end."""
        return await self._done(lambda file: file.cancel(principal, id))

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known of a run."""
        return await self._done(lambda file: file.status(principal, id))

    async def runs(self, principal: str, most: int = 100, directory: str | None = None) -> list[RunStatus]:
        """Return the latest runs of *principal*."""
        return await self._done(lambda file: file.runs(principal, most, directory))

    async def left_behind(self) -> list[str]:
        """Return the open runs that nobody alive carries out."""
        return await self._done(lambda file: file.left_behind())

    async def _done(self, do: Callable[[LedgerFile], Any] | None) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._add(_Work(do, loop, answer))
        try:
            return await answer
        except (sqlite3.Error, OSError) as error:
            raise LedgerUnavailable(str(error)) from error

    def _add(self, work: _Work) -> None:
        if self._thread.ident is None:
            self._thread.start()
        self._work.put(work)

    # ---------------------------------------------------------------- on the thread

    def _write(self) -> None:
        while (first := self._work.get()) is not None:
            together = [first]
            while len(together) < MAX_TOGETHER and not self._work.empty():
                if (more := self._work.get()) is None:
                    self._taken(together)
                    return
                together.append(more)
            self._taken(together)

    def _taken(self, works: list[_Work]) -> None:
        if todo := [work for work in works if work.do]:
            self._together(todo)
        for work in works:
            if work.do is None:
                _tell(work, None)
        self._ends_taken += sum(work.answer is None for work in works)

    def _together(self, works: list[_Work]) -> None:
        """Do *works* in one transaction; when it fails, each alone, so that each has its own answer."""
        try:
            self._file.begin()
        except Exception as error:  # noqa: BLE001 - whatever a file can fail with is somebody's answer
            # One wait for a locked file is enough for all of them.
            for work in works:
                _fail(work, error)
            return
        try:
            answers = self._in_one(works)
        except Exception as error:  # noqa: BLE001 - as above
            self._file.roll_back()
            if len(works) == 1:
                _fail(works[0], error)
                return
            for work in works:
                self._together([work])
            return
        for work, answer in zip(works, answers, strict=True):
            _tell(work, answer)

    def _in_one(self, works: list[_Work]) -> list[Any]:
        answers = [work.do(self._file) for work in works if work.do]
        self._file.clean()
        self._file.commit()
        return answers

    async def health(self) -> Mapping[str, str]:
        """Return that it is a file, and what its entries survive."""
        return {"kind": "file", "survives": "a loss of power" if self._file.power else "a crash or a kill"}

    async def aclose(self) -> None:
        """Let go of the file, in a thread."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Write what is there and let go of the file."""
        if self._thread.ident is not None:
            self._work.put(None)
            self._thread.join(END_SECONDS)
            if not self._thread.is_alive():
                self._file.close()


def _fail(work: _Work, error: Exception) -> None:
    if work.answer is None:
        logger.warning("the end of a call could not be written to the ledger: %s", error)
    _tell(work, error)


def _tell(work: _Work, found: Any) -> None:
    if work.loop is None or work.answer is None or work.loop.is_closed():
        return
    work.loop.call_soon_threadsafe(partial(_settle, work.answer, found))


def _settle(answer: asyncio.Future[Any], found: Any) -> None:
    if answer.done():  # whoever waited was cancelled
        return
    if isinstance(found, BaseException):
        answer.set_exception(found)
    else:
        answer.set_result(found)
