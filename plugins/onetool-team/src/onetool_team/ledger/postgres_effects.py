"""PostgresEffects: the calls in a team's ledger; what arrives while a transaction is under way goes into the next."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from onetool_team.ledger import postgres_sql as sql
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import MALFORMED, PostgresSessions, Rows, Step
from onetool_team.ledger.postgres_writer import PostgresWriter
from ot.errors import LedgerUnavailable, RunFenced
from ot.execution.ledger import SETTLE_SECONDS, Effect, HowEnded, UnknownEffect
from ot.ledger.entries import LedgerEntry, encode_value, read_value
from ot.ledger.fingerprint import fingerprint
from ot.ledger.run_book import FENCED, LEASE_SECONDS

logger = logging.getLogger(__name__)

TOGETHER = 64
"""How much is written in one transaction."""
SOON_SECONDS = 0.05
"""How long an end waits for others, which are written in one transaction."""
MOST_ENDS = 10_000
"""How many ends wait for a PostgreSQL that does not take them."""
RETRY_SECONDS = 0.5
WAIT_SECONDS = 30.0
"""How long a background run, which has the time, waits for a PostgreSQL that is away or slow."""
LOST = "the end of a call was not written to the ledger: %d wait already"

type Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Sending:
    """A call that waits to be written down, or nothing: whoever waits for what came before."""

    row: Mapping[str, Any] | None
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class _End:
    """How a call ended, as it will be written."""

    state: HowEnded
    at: datetime
    value: bytes | None = None
    buried: Mapping[str, Any] | None = None
    """The call, where nobody knows whether it was written down."""


class PostgresEffects:
    """Writes down what is sent before it is, and how it ended soon after, or as soon as PostgreSQL takes it."""

    def __init__(
        self,
        sessions: PostgresSessions,
        place: PostgresPlace,
        *,
        days: int = 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Keep entries by *sessions* for so many days."""
        self.sessions = sessions
        self.place = place
        self.writer = PostgresWriter(sessions, days)
        self._clock = clock
        self._tickets = 0
        self._sends: list[_Sending] = []
        self._ends: dict[Key, _End] = {}
        self._news = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._ends_are_due = False

    async def send(self, effect: Effect, *, again: bool = False) -> UnknownEffect | None:
        """Return when it is written down, or the same call whose effect is unknown; a background run waits for that."""
        row, waiting_ends = self._row(effect, again=again), time.monotonic() + (WAIT_SECONDS if effect.start else 0.0)
        try:
            while True:
                asked = time.monotonic()
                try:
                    found = await self._send(row)
                    # Frozen meanwhile, this process may hold an answer that is true no more.
                    while effect.start and found is None and time.monotonic() - asked > LEASE_SECONDS / 2:
                        asked = time.monotonic()
                        await self._require_going(effect)
                except LedgerUnavailable:
                    if time.monotonic() >= waiting_ends:
                        raise
                else:
                    return found
                await asyncio.sleep(RETRY_SECONDS)
        except LedgerUnavailable:
            # It may have arrived all the same; whoever refuses the call because of this says that it failed.
            self._bury(row, "unknown")
            raise
        except RunFenced:
            self.record_end(effect, "failed")  # if it was written down before
            raise
        except asyncio.CancelledError:
            self._bury(row, "failed")
            raise

    async def _send(self, row: Mapping[str, Any]) -> UnknownEffect | None:
        await self.writer.begin()
        return await self._hand_over(_Sending(row))

    async def _require_going(self, effect: Effect) -> None:
        given = {"id": self.place.name(effect.run_id), "start": effect.start}
        if not (await self.sessions.take((sql.GOES_ON, given)))[0]:
            raise RunFenced(FENCED)

    async def _hand_over(self, sending: _Sending) -> Any:
        """Return the answer to *sending*, written with whatever waits."""
        if trouble := self.sessions.trouble:
            raise LedgerUnavailable(trouble)
        self._sends.append(sending)
        self._ends_are_due |= sending.row is None
        self._wake()
        return await sending.answer

    def _row(self, effect: Effect, *, again: bool) -> Mapping[str, Any]:
        self._tickets += 1
        tool, place = effect.tool.full_name, self.place
        return {
            "run": place.name(effect.run_id),
            "start": effect.start,
            "call": effect.call_id,
            "principal": place.who(effect.caller.principal),
            "tool": place.text(tool),
            "line": effect.line,
            "ticket": self._tickets,
            "sent": datetime.fromtimestamp(self._clock(), UTC),
            "given_key": place.text(effect.given_key),
            "directory": place.text(effect.directory),
            "again": again,
            "me": self.writer.id,
        } | {
            f"print{n}": bytes.fromhex(fingerprint(tool, effect.arguments, key))
            for n, key in enumerate(place.fingerprint_keys)
        }

    def record_end(self, effect: Effect, how: HowEnded, value: Any = None) -> None:
        """Have it written down how it ended; while PostgreSQL does not take it, it is tried again."""
        key = (self.place.name(effect.run_id), effect.start, effect.call_id)
        text = encode_value(value)
        sealed = self.place.seal(_value_place(*key), text) if text else None
        buried = self._ends[key].buried if key in self._ends else None
        self._add_end(key, _End(how, datetime.fromtimestamp(self._clock(), UTC), sealed, buried))

    def _bury(self, row: Mapping[str, Any], how: HowEnded) -> None:
        key = (row["run"], row["start"], row["call"])
        self._add_end(key, _End(how, datetime.fromtimestamp(self._clock(), UTC), buried=row))

    def _add_end(self, key: Key, end: _End) -> None:
        if len(self._ends) >= MOST_ENDS and key not in self._ends:
            logger.warning(LOST, len(self._ends))
            return
        self._ends[key] = end
        self._ends_are_due |= end.state == "unknown"  # the next call may be the same
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_SECONDS, self._write_ends_now)

    async def settle(self) -> None:
        """Return when it is written down how calls ended so far."""
        with suppress(LedgerUnavailable, TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._write_ends()

    async def _write_ends(self) -> None:
        """Write what waits; whoever reads next must see it.

        Raises:
            LedgerUnavailable: It could not be written.
        """
        for _ in range(0, len(self._ends), TOGETHER):
            await self._hand_over(_Sending(None))

    # ---------------------------------------------------------------- the writing

    def _write_ends_now(self) -> None:
        self._soon, self._ends_are_due = None, True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_on())

    async def _write_on(self) -> None:
        """Write all that is sent, and ends once they are due: nobody who sends waits for those of others."""
        while self._sends or (self._ends and self._ends_are_due):
            sends, self._sends = self._sends[:TOGETHER], self._sends[TOGETHER:]
            # In the order of their names: a transaction that is tried again meets itself, and neither waits for ever.
            sends = sorted((one for one in sends if not one.answer.done()), key=_order)
            ends = dict(islice(self._ends.items(), TOGETHER)) if self._ends_are_due else {}
            self._ends_are_due &= len(ends) < len(self._ends)
            self._news.clear()
            try:
                await self._write(sends, ends)
            except LedgerUnavailable as error:
                _answer_all(sends, error)
                self._ends_are_due |= bool(ends)
                if not self._sends:
                    logger.info("%d ends of calls wait for the ledger: %s", len(self._ends), error.why)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(RETRY_SECONDS):
                            await self._news.wait()

    async def _write(self, sends: Sequence[_Sending], ends: Mapping[Key, _End]) -> None:
        """Write all of it in one transaction; where PostgreSQL finds something malformed, each by itself."""
        rows = [row for row in (one.row for one in sends) if row]
        try:
            steps = self._steps(rows, ends)
            found = await self.sessions.take(*steps) if steps else []
        except MALFORMED as error:
            if len(rows) + len(ends) > 1:
                for key, end in ends.items():
                    await self._write([], {key: end})
                for one in sends:
                    await self._write([one], {})
                return
            logger.warning("an entry of the ledger is malformed and not written: %.200s", error)
            _answer_all(sends, LedgerUnavailable("the call is malformed for PostgreSQL"))
        else:
            _answer_all([one for one in sends if not one.row], None)
            written = [one for one in sends if one.row]
            for one, row, (answer,) in zip(written, rows, found[len(ends) :], strict=True):
                _answer_all([one], _what_was_sent(*answer))
                self.writer.count(row["principal"])
        for key, end in ends.items():
            if self._ends.get(key) is end:
                del self._ends[key]

    def _steps(self, rows: Sequence[Mapping[str, Any]], ends: Mapping[Key, _End]) -> list[Step]:
        steps: list[Step] = []
        for (run, start, call), end in ends.items():
            how = {"state": end.state, "ended": end.at}
            if end.buried:
                steps.append((sql.BURY, {**end.buried, **how}))
            else:
                how |= {"value": end.value, "me": self.writer.id}
                steps.append((sql.END, {"run": run, "start": start, "call": call, **how}))
        keys = len(self.place.fingerprint_keys)
        return steps + [(sql.send(keys, is_background=row["start"] > 0), row) for row in rows]

    # ---------------------------------------------------------------- the reading

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*, as they were made."""
        await self._write_ends()
        given = {"run": self.place.name(run), "who": self.place.who(principal), "me": self.writer.id}
        (rows,) = await self.sessions.take((sql.OF_RUN, given))
        found = self._entries(rows)
        return [replace(entry, run=run) for entry in found if directory in (None, entry.directory)]

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal* whose effect is unknown."""
        await self._write_ends()
        given = {"who": self.place.who(principal), "most": most, "directory": directory, "me": self.writer.id}
        (rows,) = await self.sessions.take((sql.UNKNOWN, given))
        return self._entries(rows)

    def _entries(self, rows: Rows) -> list[LedgerEntry]:
        found: list[LedgerEntry] = []
        for run, call, tool, line, state, sent, ended, start, sealed, key, directory in rows:
            try:
                value = read_value(self.place.try_unseal(_value_place(run, start, call), sealed)) if sealed else None
                at, over = sent.timestamp(), ended.timestamp() if ended else None
                found.append(LedgerEntry(run, call, tool, line, state, at, over, start, value, key, directory))
            except (ValueError, TypeError, AttributeError) as error:
                logger.warning("an entry of run %s in the ledger is malformed and skipped: %.200s", run, error)
        return found

    async def health(self) -> Mapping[str, str]:
        """Return the kind of ledger, its status, and why entries may be lost, if they may."""
        why_not = self.sessions.trouble or await self.sessions.why_not_durable()
        status = "unreachable" if self.sessions.trouble else "not durable" if why_not else "ok"
        return {"kind": "postgres", "status": status} | ({"why": why_not} if why_not else {})

    async def aclose(self) -> None:
        """Write what waits, if PostgreSQL takes it, and show that this writer has ended."""
        with suppress(LedgerUnavailable):
            await self._write_ends()
        if self._soon:
            self._soon.cancel()
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self.writer.aclose()
        await self.sessions.aclose()


def _order(sending: _Sending) -> Key:
    row = sending.row
    return (row["run"], row["start"], row["call"]) if row else ("", 0, 0)


def _answer_all(sends: Sequence[_Sending], answer: Any) -> None:
    for one in sends:
        if one.answer.done():  # whoever waited was cancelled
            continue
        if isinstance(answer, Exception):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)


def _what_was_sent(written: bool, allowed: bool, run: str | None, line: int | None, sent: datetime | None) -> Any:
    if not allowed:
        return RunFenced(FENCED)
    if run is not None and sent is not None:
        return UnknownEffect(run, line, sent.timestamp())
    return None if written else LedgerUnavailable("a call of this number is there already")


def _value_place(run: str, start: int, call: int) -> str:
    return f"effects/{run}/{start}/{call}/value"
