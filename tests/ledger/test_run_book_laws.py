"""Laws of the run book that hold however starts, questions, cancels, ends and crashes of two servers come together."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ot.errors import RunFenced
from ot.execution.caller import Caller
from ot.execution.ledger import Effect
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.run_book import LEASE_SECONDS, Start
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool

ADA, BOB = Caller("ada"), Caller("bob")
RUNS = ("r1", "r2")
MOST_CALLS = 3
YES: Mapping[str, Any] = {"action": "accept", "content": {}}
PAY = Tool("bank", "pay")

runs = st.sampled_from(RUNS)
servers = st.integers(0, 1)
ages = st.integers(0, 2)
"""Which start acts: the latest, the one before, the one before that, as far as there are any."""


def effect(run: str, start: int, call: int) -> Effect:
    """Return a call whose arguments no other call has."""
    return Effect(ADA, run, call, 1, PAY, {"key": f"{run}/{start}/{call}"}, start=start)


@dataclass
class Expected:
    """What the laws say of one run."""

    starts: int = 0
    beat: float = 0.0
    writer: int = 0
    """Which life of which server began it last."""
    cancelled: bool = False
    end: RunEnd | None = None
    question: int | None = None
    answered: bool = False
    sent: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    def start(self, age: int) -> int:
        """Return the number of a start of that *age*."""
        return max(self.starts - age, 1)

    def goes_on(self, start: int) -> bool:
        """Return whether the word of *start* counts."""
        return start == self.starts and self.end is None

    @property
    def state(self) -> str:
        """What the book is to say."""
        if self.end:
            return self.end.state
        return "asks" if self.question is not None else "running" if self.starts else "waiting"


class TwoServersKeepTheLaws(RuleBasedStateMachine):
    """Two servers of one user, which die and come back, do with two runs what they like."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.now = 1e9
        self.lives = itertools.count(1)
        self.numbers = itertools.count(1)
        self.life = [0, 0]
        self.ledgers = [self.opened(0), self.opened(1)]
        self.expected = {id: Expected() for id in RUNS}
        for id in RUNS:
            self.done(self.ledgers[0].add(BackgroundRun(id, "ada", "1 + 1", self.now), 10))

    def opened(self, server: int) -> SqliteLedger:
        self.life[server] = next(self.lives)
        file = Path(self.directory.name) / "ledger" / "ledger.db"
        return SqliteLedger(LedgerFile(file, clock=lambda: self.now))

    def done[T](self, work: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(20):
                return await work

        return self.loop.run(waited())

    def teardown(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.directory.cleanup()
        self.loop.close()

    # ---------------------------------------------------------------- what servers do

    @rule(seconds=st.sampled_from([1.0, LEASE_SECONDS - 2, LEASE_SECONDS + 1]))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds

    @rule(server=servers)
    def a_server_dies_and_comes_back(self, server: int) -> None:
        self.ledgers[server].close()
        self.ledgers[server] = self.opened(server)

    @rule(server=servers, id=runs)
    def a_server_begins(self, server: int, id: str) -> None:
        run, start = self.expected[id], self.done(self.ledgers[server].begin(id))
        assert start is not None
        if run.end:
            assert (0, run.end) == (start.number, start.end)
        elif self.is_held_elsewhere(run, server):
            assert (0, True) == (start.number, start.alive)
        else:
            self.check_began(run, start)
            run.starts, run.beat, run.writer = start.number, self.now, self.life[server]
            run.question, run.answered = None, False

    def is_held_elsewhere(self, run: Expected, server: int) -> bool:
        is_other = run.writer != self.life[server] and run.writer in self.life
        return run.starts > 0 and is_other and run.beat > self.now - LEASE_SECONDS

    def check_began(self, run: Expected, start: Start) -> None:
        assert (run.starts + 1, run.cancelled) == (start.number, start.cancelled)
        assert run.sent.keys() == {(entry.start, entry.call) for entry in start.effects}

    @rule(server=servers, id=runs, age=ages)
    def a_start_beats(self, server: int, id: str, age: int) -> None:
        run = self.expected[id]
        start = run.start(age)
        beat = self.done(self.ledgers[server].beat(id, start))
        assert beat.fenced is not run.goes_on(start)
        if not beat.fenced:
            run.beat = self.now
            assert (run.cancelled, YES if run.answered else None) == (beat.cancelled, beat.answer)

    @rule(server=servers, id=runs, age=ages, call=st.integers(1, MOST_CALLS))
    def a_start_sends(self, server: int, id: str, age: int, call: int) -> None:
        run = self.expected[id]
        start = run.start(age)
        if (start, call) in run.sent:
            return
        with self.fenced_unless(run.goes_on(start)):
            self.done(self.ledgers[server].send(effect(id, start, call)))
            run.sent[start, call] = "open"

    @rule(server=servers, id=runs, how=st.sampled_from(["done", "failed", "unknown"]))
    def a_call_ends(self, server: int, id: str, how: Any) -> None:
        run = self.expected[id]
        if found := next((key for key, state in run.sent.items() if state == "open"), None):
            self.ledgers[server].ended(effect(id, *found), how)
            self.done(self.ledgers[server].runs("ada"))  # what was handed over before has been written with it
            run.sent[found] = how

    @rule(server=servers, id=runs, age=ages, asks=st.booleans())
    def a_start_asks_or_goes_on(self, server: int, id: str, age: int, asks: bool) -> None:
        run = self.expected[id]
        start, number = run.start(age), next(self.numbers)
        with self.fenced_unless(run.goes_on(start)):
            self.done(self.ledgers[server].ask(id, start, {"number": number} if asks else None))
            run.question, run.answered = number if asks else None, False

    @rule(server=servers, id=runs, late=st.booleans(), caller=st.sampled_from([ADA, ADA, BOB]))
    def somebody_answers(self, server: int, id: str, late: bool, caller: Caller) -> None:
        run = self.expected[id]
        number = (run.question or 0) - late
        counts = caller is ADA and run.question == number and not run.answered and run.end is None
        for is_first in (True, False):
            assert (counts and is_first) is self.done(self.ledgers[server].answer(caller.principal, id, number, YES))
        run.answered = run.answered or counts

    @rule(server=servers, id=runs, age=ages, state=st.sampled_from(["done", "failed", "stopped", "cancelled"]))
    def a_start_ends(self, server: int, id: str, age: int, state: Any) -> None:
        run = self.expected[id]
        start = run.start(age)
        end = RunEnd(state, self.now, [f"by {start}"])
        counts = run.goes_on(start)
        assert counts is self.done(self.ledgers[server].end(id, start, end))
        if counts:
            run.end, run.question, run.answered = end, None, False

    @rule(server=servers, id=runs, caller=st.sampled_from([ADA, BOB]))
    def somebody_cancels(self, server: int, id: str, caller: Caller) -> None:
        run, status = self.expected[id], self.done(self.ledgers[server].cancel(caller.principal, id))
        assert (status is None) is (caller is BOB)
        if status and run.end is None:
            run.cancelled = True
            run.end = status.end
            assert (status.end is None) is (run.starts > 0)

    @contextlib.contextmanager
    def fenced_unless(self, counts: bool) -> Any:
        with contextlib.nullcontext() if counts else pytest.raises(RunFenced):
            yield

    # ---------------------------------------------------------------- what holds at any time

    @invariant()
    def the_book_says_what_happened_and_to_nobody_else(self) -> None:
        reader = self.ledgers[next(self.numbers) % 2]
        found = {status.run.id: status for status in self.done(reader.runs("ada"))}
        for id, run in self.expected.items():
            question = (found[id].question or {}).get("number")
            assert (run.state, run.starts, run.cancelled) == (found[id].state, found[id].starts, found[id].cancelled)
            assert (run.question, run.end) == (question, found[id].end)
        assert [] == self.done(reader.runs("bob"))

    @rule(server=servers)
    def what_the_dead_began_is_left_behind(self, server: int) -> None:
        left = self.done(self.ledgers[server].left_behind())
        begun = {id: run for id, run in self.expected.items() if run.starts}
        died = {id for id, run in begun.items() if run.end is None and run.writer not in self.life}
        assert died == begun.keys() & set(left)


TestTwoServersKeepTheLaws = TwoServersKeepTheLaws.TestCase
TestTwoServersKeepTheLaws.settings = settings(max_examples=40, stateful_step_count=30)


# ---------------------------------------------------------------- at the same time


async def sends(ledger: SqliteLedger, run: str, number: int, most: int) -> list[int]:
    """Send one call after the other until the start is fenced; return those that were let through."""
    made: list[int] = []
    with contextlib.suppress(RunFenced):
        for call in range(1, most + 1):
            await ledger.send(effect(run, number, call))
            made.append(call)
    return made


@given(before=st.integers(0, 5), most=st.integers(5, 30))
@settings(max_examples=15)
def test_what_an_earlier_start_got_through_is_known_to_the_start_that_fences_it(before: int, most: int) -> None:
    async def race(first: SqliteLedger, second: SqliteLedger, clock: list[float]) -> None:
        await first.add(BackgroundRun("r1", "ada", "1", clock[0]), 10)
        begun = await first.begin("r1")
        assert begun is not None
        clock[0] += LEASE_SECONDS + 1

        async def take_over() -> Start | None:
            for _ in range(before):
                await second.status("ada", "r1")
            return await second.begin("r1")

        made, taken = await asyncio.gather(sends(first, "r1", begun.number, most), take_over())
        assert taken is not None
        assert made == [entry.call for entry in taken.effects]
        assert not await first.end("r1", begun.number, RunEnd("done", clock[0]))
        assert await second.end("r1", taken.number, RunEnd("stopped", clock[0]))

    with tempfile.TemporaryDirectory() as directory:
        clock = [1e9]
        file = Path(directory) / "ledger" / "ledger.db"
        pair = [SqliteLedger(LedgerFile(file, clock=lambda: clock[0])) for _ in range(2)]
        try:
            asyncio.run(asyncio.wait_for(race(pair[0], pair[1], clock), 60))
        finally:
            for ledger in pair:
                ledger.close()


@given(count=st.integers(2, 12))
@settings(max_examples=10)
def test_of_answers_that_come_together_one_counts(count: int) -> None:
    async def race(pair: list[SqliteLedger]) -> None:
        await pair[0].add(BackgroundRun("r1", "ada", "1", 1e9), 10)
        await pair[0].begin("r1")
        await pair[0].ask("r1", 1, {"number": 7})
        given = [pair[n % 2].answer("ada", "r1", 7, {"action": "accept", "content": {"n": n}}) for n in range(count)]
        counted = await asyncio.gather(*given)
        beat = await pair[1].beat("r1", 1)
        assert beat.answer is not None
        assert counted == [n == beat.answer["content"]["n"] for n in range(count)]

    with tempfile.TemporaryDirectory() as directory:
        pair = [SqliteLedger(LedgerFile(Path(directory) / "ledger" / "ledger.db")) for _ in range(2)]
        try:
            asyncio.run(asyncio.wait_for(race(pair), 60))
        finally:
            for ledger in pair:
                ledger.close()
