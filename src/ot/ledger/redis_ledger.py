"""RedisLedger: the ledger that the replicas and workers of a team's server share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ot.errors import LedgerUnavailable, RunFenced, TooManyRuns
from ot.ledger import redis_scripts as scripts
from ot.ledger.background_run import BackgroundRun, RunEnd, RunState, RunStatus
from ot.ledger.redis_effects import RedisEffects
from ot.ledger.redis_place import RedisPlace
from ot.ledger.run_book import CANCELLED_WAITING, FENCED, LEASE_SECONDS, Beat, Start

logger = logging.getLogger(__name__)

LEASE_MS = int(LEASE_SECONDS * 1000)
UNREADABLE = "how it ended was not written with state.keys, and is not believed"


class RedisLedger(RedisEffects):
    """Keeps background runs, too: what is asked for, asked and answered is sealed, and a forgery is not carried out."""

    def __init__(self, place: RedisPlace, *, days: int = 30, clock: Callable[[], float] = time.time) -> None:
        """Keep everything at *place*, what has ended for so many days."""
        super().__init__(place, days=days, clock=clock)
        self._asked: dict[str, int] = {}
        """The numbers of the questions that runs of this process ask: no answer to another one counts."""

    async def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run."""
        name, key = self.place.who(run.principal), self._run(run.id)
        keys = [key, self.place.key("runs", name), self.place.key("open-runs", name), self._open_runs]
        sealed = self.place.seal(key, run.as_json())
        answer = await self.place.step(
            scripts.ADD, keys, [self.place.name(run.id), sealed, name, run.created, most_open]
        )
        if answer == b"many":
            raise TooManyRuns(most_open)
        if answer == b"twice":
            raise LedgerUnavailable("a run of this id is there already")

    async def begin(self, id: str) -> Start | None:
        """Return the next start of a run; nothing for one that was not sealed with our keys, either."""
        await self._write_ends()
        self.writer.start()
        effects = self.place.key("effects", id)
        keys = [self._run(id), self.writer.key, effects, self.place.key("beat", id)]
        match await self.place.step_durably(scripts.BEGIN, keys, [self.writer.name, LEASE_MS]):
            case [b"ended", record, ending]:
                run = self._record(id, record)
                return run and Start(run, 0, end=self._end_of(id, ending))
            case [b"alive", record]:
                run = self._record(id, record)
                return run and Start(run, 0, alive=True)
            case [b"begun", record, number, cancelled, found, living]:
                run = self._record(id, record)
                done = self.entries(self.place.who(run.principal), effects, found, living) if run else ()
                return run and Start(run, number, cancelled=bool(cancelled), effects=done)
            case _:
                return None

    async def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note the packs of a run, or return those noted first."""
        place = f"{self._run(id)}/packs"
        found = await self.place.step(scripts.PACKS, [self._run(id)], [start, self.place.seal(place, dict(packs))])
        if not found:
            raise RunFenced(FENCED)
        return self.place.try_unseal(place, found) or dict.fromkeys(packs, "")

    async def beat(self, id: str, start: int) -> Beat:
        """Show that *start* is alive."""
        keys = [self._run(id), self.writer.key, self.place.key("beat", id)]
        found = await self.place.step(scripts.BEAT, keys, [start, self.writer.name, LEASE_MS])
        if not found:
            self._asked.pop(id, None)
            return Beat(fenced=True)
        number = self._asked.get(id)
        answer = self.place.try_unseal(self._answer_place(id, number), found[1]) if number is not None else None
        return Beat(cancelled=bool(found[0]), answer=answer)

    async def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask, or go on."""
        key, number = self._run(id), question["number"] if question else 0
        sealed = self.place.seal(f"{key}/question", dict(question)) if question else b""
        if not await self.place.step(scripts.ASK, [key], [start, number, sealed]):
            raise RunFenced(FENCED)
        self._asked.pop(id, None)
        if question:
            self._asked[id] = number

    async def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer a question."""
        sealed = self.place.seal(self._answer_place(id, number), dict(answer))
        return bool(await self.place.step(scripts.ANSWER, [self._run(id)], [self.place.who(principal), number, sealed]))

    async def end(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how a run ended."""
        arguments = [self.place.name(id), self.place.prefix, start, end.state, self._seal_end(id, end), self._keep]
        ended = await self.place.step(scripts.END, self._keys_of_end(id), arguments)
        self._asked.pop(id, None)
        return bool(ended)

    async def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want a run to end."""
        ending = self._seal_end(id, RunEnd("cancelled", self._clock(), (CANCELLED_WAITING,)))
        arguments = [self.place.name(id), self.place.prefix, self.place.who(principal), ending, self._keep]
        await self.place.step(scripts.CANCEL, self._keys_of_end(id), arguments)
        return await self.status(principal, id)

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known of a run."""
        return self._status(self.place.who(principal), id, await self.place.step(scripts.RUN, [self._run(id)]))

    async def runs(self, principal: str, most: int = 100, directory: str | None = None) -> list[RunStatus]:
        """Return the latest runs of *principal*; *directory* is looked for among them."""
        name = self.place.who(principal)
        rows = await self.place.step(scripts.RUNS, [self.place.key("runs", name)], [self.place.prefix, most])
        found = [self._status(name, id.decode(), row) for id, row in rows]
        return [status for status in found if status and directory in (None, status.run.directory)]

    async def list_left_behind(self) -> list[str]:
        """Return the open runs that nobody alive carries out."""
        keys = [self._open_runs, self.writer.key]
        return [id.decode() for id in await self.place.step(scripts.LEFT_BEHIND, keys, [self.place.prefix])]

    # ---------------------------------------------------------------- how

    def _run(self, id: str) -> str:
        return self.place.key("run", id)

    @property
    def _open_runs(self) -> str:
        return self.place.key("open-runs")

    def _keys_of_end(self, id: str) -> list[str]:
        return [self._run(id), self.place.key("effects", id), self._open_runs]

    def _answer_place(self, id: str, number: int) -> str:
        return f"{self._run(id)}/answer/{number}"

    def _record(self, id: str, sealed: bytes) -> BackgroundRun | None:
        found = self.place.try_unseal(self._run(id), sealed)
        if found is None:
            logger.warning("background run %s was not written with state.keys, and is not carried out", id)
        return BackgroundRun.of_json(found) if found else None

    def _seal_end(self, id: str, end: RunEnd) -> bytes:
        return self.place.seal(f"{self._run(id)}/end", end.as_json())

    def _end_of(self, id: str, sealed: bytes) -> RunEnd:
        found = self.place.try_unseal(f"{self._run(id)}/end", sealed)
        return RunEnd.of_json(found) if found else RunEnd("stopped", self._clock(), error=UNREADABLE)

    def _status(self, name: str, id: str, row: Sequence[bytes | None]) -> RunStatus | None:
        record, whose, state, starts, question, cancelled, ending = row
        run = self._record(id, record) if record and whose == name.encode() else None
        if run is None or self.place.who(run.principal) != name:
            return None
        known: RunState = (state or b"stopped").decode()  # pyright: ignore[reportAssignmentType] - what a script wrote
        asked = self.place.try_unseal(f"{self._run(id)}/question", question)
        return RunStatus(
            run, known, int(starts or 0), asked, bool(cancelled), self._end_of(id, ending) if ending else None
        )
