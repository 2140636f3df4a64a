"""PostgresLedger: the ledger that the replicas and workers of a team's server share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from onetool_team.ledger import postgres_sql as sql
from onetool_team.ledger.postgres_effects import PostgresEffects
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import MALFORMED, PostgresSessions, Rows, Step
from ot.errors import LedgerUnavailable, RunFenced, TooManyRuns
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.run_book import CANCELLED_WAITING, FENCED, LEASE_SECONDS, Beat, Start

logger = logging.getLogger(__name__)

UNREADABLE = "how it ended was not written with state.keys, and is not believed"


class PostgresLedger(PostgresEffects):
    """Keeps background runs, too: what is asked for, asked and answered is sealed, and a forgery is not carried out."""

    def __init__(
        self,
        sessions: PostgresSessions,
        place: PostgresPlace,
        *,
        days: int = 30,
        clock: Callable[[], float] = time.time,
        patience: float = LEASE_SECONDS,
    ) -> None:
        """Keep everything by *sessions*, what has ended for so many days.

        *patience* is how long this process must have been able to beat itself before it takes others for dead.
        """
        super().__init__(sessions, place, days=days, clock=clock)
        self._patience = patience
        self._asked: dict[str, int] = {}
        """The numbers of the questions that runs of this process ask: no answer to another one counts."""

    async def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run."""
        name, who = self.place.name(run.id), self.place.who(run.principal)
        given = {"id": name, "who": who, "most": most_open, "created": datetime.fromtimestamp(run.created, UTC)}
        given["record"] = self.place.seal(_place(name, "record"), run.as_json())
        _, ((has_room, is_added),) = await self._take((sql.ADD_IN_TURN, given), (sql.ADD, given))
        if not has_room:
            raise TooManyRuns(most_open)
        if not is_added:
            raise LedgerUnavailable("a run of this id is there already")

    async def begin(self, id: str) -> Start | None:
        """Return the next start of a run; nothing for one that was not sealed with our keys, either."""
        await self._write_ends()
        await self.writer.begin()
        name = self.place.name(id)
        while found := await self._rows(sql.LOOK, id=name, me=self.writer.id, patience=self._patience):
            record, number, writer, ending, is_carried = found[0]
            run = self._record(name, record)
            if run is None:
                return None
            if ending is not None:
                return Start(run, 0, end=self._end_of(name, ending))
            if is_carried and writer != self.writer.id:
                return Start(run, 0, alive=True)
            given = {"id": name, "start": number, "was": writer, "me": self.writer.id}
            entries = {"run": name, "who": self.place.who(run.principal), "me": self.writer.id}
            # The entries are read once the row is locked: a call that was just let through is seen.
            begun, rows = await self._take((sql.BEGIN, given), (sql.OF_RUN, entries))
            if begun:
                ((number, is_cancelled),) = begun
                return Start(run, number, cancelled=is_cancelled, effects=self._entries(rows))
        return None

    async def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note the packs of a run, or return those noted first."""
        name = self.place.name(id)
        place = _place(name, "packs")
        found = await self._rows(sql.PACKS, id=name, start=start, packs=self.place.seal(place, dict(packs)))
        if not found:
            raise RunFenced(FENCED)
        return self.place.try_unseal(place, found[0][0]) or dict.fromkeys(packs, "")

    async def beat(self, id: str, start: int) -> Beat:
        """Show that *start* is alive."""
        name = self.place.name(id)
        _, found = await self._take((sql.BEAT_QUIETLY, {}), (sql.BEAT, {"id": name, "start": start}))
        if not found:
            self._asked.pop(name, None)
            return Beat(fenced=True)
        ((is_cancelled, sealed),) = found
        number = self._asked.get(name)
        answer = self.place.try_unseal(_answer_place(name, number), sealed) if number is not None else None
        return Beat(cancelled=is_cancelled, answer=answer)

    async def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask, or go on."""
        name, number = self.place.name(id), question["number"] if question else None
        sealed = self.place.seal(_place(name, "question"), dict(question)) if question else None
        state = "asks" if question else "running"
        if not await self._rows(sql.ASK, id=name, start=start, state=state, number=number, question=sealed):
            raise RunFenced(FENCED)
        self._asked.pop(name, None)
        if number is not None:
            self._asked[name] = number

    async def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer a question."""
        name, who = self.place.name(id), self.place.who(principal)
        sealed = self.place.seal(_answer_place(name, number), dict(answer))
        return bool(await self._rows(sql.ANSWER, id=name, who=who, number=number, answer=sealed))

    async def end(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how a run ended."""
        name = self.place.name(id)
        found = await self._rows(sql.END_RUN, id=name, start=start, state=end.state, ending=self._seal_end(name, end))
        self._asked.pop(name, None)
        return bool(found)

    async def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want a run to end."""
        name = self.place.name(id)
        ending = self._seal_end(name, RunEnd("cancelled", self._clock(), (CANCELLED_WAITING,)))
        given = {"id": name, "who": self.place.who(principal), "ending": ending}
        await self._take((sql.CANCEL_WAITING, given), (sql.CANCEL, given))
        return await self.status(principal, id)

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known of a run."""
        return await self.status_of(self.place.who(principal), id)

    async def status_of(self, who: bytes, id: str) -> RunStatus | None:
        """Return what is known of a run of whoever *who* stands for."""
        found = await self._rows(sql.RUN, id=self.place.name(id), who=who)
        return self._status(who, found[0]) if found else None

    async def runs(self, principal: str, most: int = 100, directory: str | None = None) -> list[RunStatus]:
        """Return the latest runs of *principal*; *directory* is looked for among them."""
        who = self.place.who(principal)
        found = [self._status(who, row) for row in await self._rows(sql.RUNS, who=who, most=most)]
        return [status for status in found if status and directory in (None, status.run.directory)]

    async def list_left_behind(self) -> list[str]:
        """Return the open runs that nobody alive carries out."""
        await self.writer.begin()
        rows = await self._rows(sql.LEFT_BEHIND, me=self.writer.id, patience=self._patience)
        return [id for (id,) in rows]

    # ---------------------------------------------------------------- for workers

    async def take_runs(self, most: int, share: int) -> list[str]:
        """Return at most so many runs that are this process's to begin: those of the dead, then what waits, fairly.

        The next run of those who have little under way comes first, and nobody has more than *share* here: a run may
        take an hour, and another one would wait for it.
        """
        await self.writer.begin()
        me = self.writer.id
        taken = await self._rows(sql.TAKE_OVER, me=me, patience=self._patience, most=most)
        if len(taken) < most:
            taken += await self._rows(sql.TAKE, me=me, share=share, most=most - len(taken))
        return [id for (id,) in taken]

    async def count_waiting(self) -> int:
        """Return how many runs nobody has taken."""
        ((count,),) = await self._rows(sql.WAITING)
        return count

    # ---------------------------------------------------------------- how

    async def _rows(self, step: str, **given: Any) -> Rows:
        return (await self._take((step, given)))[0]

    async def _take(self, *steps: Step) -> list[Rows]:
        try:
            return await self.sessions.take(*steps)
        except MALFORMED as error:
            raise LedgerUnavailable(f"PostgreSQL refuses: {str(error)[:200]}") from None

    def _record(self, name: str, sealed: bytes) -> BackgroundRun | None:
        found = self.place.try_unseal(_place(name, "record"), sealed)
        if found is None:
            logger.warning("background run %s was not written with state.keys, and is not carried out", name)
        return BackgroundRun.of_json(found) if found else None

    def _seal_end(self, name: str, end: RunEnd) -> bytes:
        return self.place.seal(_place(name, "end"), end.as_json())

    def _end_of(self, name: str, sealed: bytes) -> RunEnd:
        found = self.place.try_unseal(_place(name, "end"), sealed)
        return RunEnd.of_json(found) if found else RunEnd("stopped", self._clock(), error=UNREADABLE)

    def _status(self, who: bytes, row: Sequence[Any]) -> RunStatus | None:
        name, record, state, starts, question, is_cancelled, ending = row
        run = self._record(name, record)
        if run is None or self.place.who(run.principal) != who:
            return None
        asked = self.place.try_unseal(_place(name, "question"), question)
        return RunStatus(run, state, starts, asked, is_cancelled, self._end_of(name, ending) if ending else None)


def _place(name: str, kind: str) -> str:
    return f"run/{name}/{kind}"


def _answer_place(name: str, number: int | None) -> str:
    return _place(name, f"answer/{number}")
