"""Laws of the run book that hold however starts, questions, cancels, ends and crashes of two servers come together."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ledger.ledger_beds import ADA, BOB, PAY, FileBed, LedgerBed
from ot.errors import RunFenced
from ot.execution.caller import Caller
from ot.execution.ledger import Effect, HowEnded
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.run_book import KeptLedger, Start

RUNS = ("r1", "r2")
MOST_CALLS = 3
YES: Mapping[str, Any] = {"action": "accept", "content": {}}

runs = st.sampled_from(RUNS)
servers = st.integers(0, 1)
ages = st.integers(0, 2)
"""Which start acts: the latest, the one before, the one before that, as far as there are any."""
type MakeBed = Callable[[Path], LedgerBed]


@pytest.fixture(scope="module")
def make_bed() -> MakeBed:
    """How to make a place with nothing in it."""
    return lambda directory: FileBed(directory / "ledger" / "ledger.db")


@contextlib.contextmanager
def opened(make_bed: MakeBed) -> Generator[tuple[LedgerBed, asyncio.Runner]]:
    """Yield an empty place, and what runs coroutines in its event loop."""
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner() as loop:
        bed = loop.run(_made(make_bed, Path(directory)))
        try:
            yield bed, loop
        finally:
            loop.run(bed.aclose())


async def _made(make_bed: MakeBed, directory: Path) -> LedgerBed:
    return make_bed(directory)


def effect(run: str, start: int, call: int) -> Effect:
    """Return a call whose arguments no other call has."""
    return Effect(ADA, run, call, 1, PAY, {"key": f"{run}/{start}/{call}"}, start=start)


@dataclass
class Expected:
    """What the laws say of one run."""

    starts: int = 0
    is_recent: bool = False
    """Whether its latest start has beaten within its lease."""
    writer: int = 0
    """Which life of which server began it last."""
    asker: int = 0
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

    def __init__(self, make_bed: MakeBed) -> None:
        super().__init__()
        self.open = contextlib.ExitStack()
        self.bed, self.loop = self.open.enter_context(opened(make_bed))
        self.lives, self.numbers = itertools.count(3), itertools.count(1)
        self.life = [1, 2]
        self.ledgers = [self.bed.ledger, self.bed.process()]
        self.expected = {id: Expected() for id in RUNS}
        for id in RUNS:
            self.done(self.ledgers[0].add(BackgroundRun(id, "ada", "1 + 1", self.bed.now), 10))

    def done[T](self, work: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(20):
                return await work

        return self.loop.run(waited())

    def teardown(self) -> None:
        self.open.close()

    # ---------------------------------------------------------------- what servers do

    @rule()
    def all_are_silent_for_longer_than_their_lease(self) -> None:
        for id, run in self.expected.items():
            self.done(self.bed.let_the_lease_pass(id))
            run.is_recent = False

    @rule(server=servers)
    def a_server_dies_and_comes_back(self, server: int) -> None:
        self.done(self.ledgers[server].aclose())
        self.ledgers[server], self.life[server] = self.bed.process(), next(self.lives)

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
            run.starts, run.is_recent, run.writer = start.number, True, self.life[server]
            run.question, run.answered = None, False

    def is_held_elsewhere(self, run: Expected, server: int) -> bool:
        is_other = run.writer != self.life[server] and run.writer in self.life
        return run.starts > 0 and is_other and run.is_recent

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
            run.is_recent = True
            assert run.cancelled is beat.cancelled
            if run.asker == self.life[server]:
                assert (YES if run.answered else None) == beat.answer

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
            self.done(self.record_end(self.ledgers[server], effect(id, *found), how))
            run.sent[found] = how

    async def record_end(self, ledger: KeptLedger, effect: Effect, how: HowEnded) -> None:
        ledger.record_end(effect, how)
        await ledger.runs("ada")  # what was handed over before has been written with it

    @rule(server=servers, id=runs, age=ages, asks=st.booleans())
    def a_start_asks_or_goes_on(self, server: int, id: str, age: int, asks: bool) -> None:
        run = self.expected[id]
        start, number = run.start(age), next(self.numbers)
        with self.fenced_unless(run.goes_on(start)):
            self.done(self.ledgers[server].ask(id, start, {"number": number} if asks else None))
            run.question, run.answered, run.asker = number if asks else None, False, self.life[server]

    @rule(server=servers, id=runs, late=st.booleans(), caller=st.sampled_from([ADA, ADA, BOB]))
    def somebody_answers(self, server: int, id: str, late: bool, caller: Caller) -> None:
        run = self.expected[id]
        number = (run.question or 0) - late
        counts = caller is ADA and run.question == number and run.end is None
        for is_first in (True, False):
            assert (counts and is_first) is self.done(self.ledgers[server].answer(caller.principal, id, number, YES))
        if counts:
            run.question, run.answered = None, True

    @rule(server=servers, id=runs, age=ages, state=st.sampled_from(["done", "failed", "stopped", "cancelled"]))
    def a_start_ends(self, server: int, id: str, age: int, state: Any) -> None:
        run = self.expected[id]
        start = run.start(age)
        end = RunEnd(state, self.bed.now, (f"by {start}",))
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
    def fenced_unless(self, counts: bool) -> Generator[None]:
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
        left = set(self.done(self.ledgers[server].list_left_behind()))
        for id, run in self.expected.items():
            if run.end or (run.starts and run.writer in self.life and run.is_recent):
                assert id not in left
            elif run.starts and run.writer not in self.life:
                assert id in left


def test_two_servers_that_die_and_come_back_keep_the_laws(make_bed: MakeBed) -> None:
    often = settings(max_examples=25, stateful_step_count=30)
    run_state_machine_as_test(partial(TwoServersKeepTheLaws, make_bed), settings=often)  # pyright: ignore[reportArgumentType] - it takes any factory


# ---------------------------------------------------------------- at the same time


async def sends(ledger: KeptLedger, run: str, number: int, most: int) -> list[int]:
    """Send one call after the other until the start is fenced; return those that were let through."""
    made: list[int] = []
    with contextlib.suppress(RunFenced):
        for call in range(1, most + 1):
            await ledger.send(effect(run, number, call))
            made.append(call)
    return made


@given(before=st.integers(0, 5), most=st.integers(5, 30))
@settings(max_examples=15)
def test_what_an_earlier_start_got_through_is_known_to_the_start_that_fences_it(
    make_bed: MakeBed, before: int, most: int
) -> None:
    async def race(bed: LedgerBed) -> None:
        first, second = bed.ledger, bed.process()
        await first.add(BackgroundRun("r1", "ada", "1", bed.now), 10)
        begun = await first.begin("r1")
        assert begun is not None
        await bed.let_the_lease_pass("r1")

        async def take_over() -> Start | None:
            for _ in range(before):
                await second.status("ada", "r1")
            return await second.begin("r1")

        made, taken = await asyncio.gather(sends(first, "r1", begun.number, most), take_over())
        assert taken is not None
        assert made == [entry.call for entry in taken.effects]
        assert not await first.end("r1", begun.number, RunEnd("done", bed.now))
        assert await second.end("r1", taken.number, RunEnd("stopped", bed.now))

    with opened(make_bed) as (bed, loop):
        loop.run(asyncio.wait_for(race(bed), 60))


@given(count=st.integers(2, 12))
@settings(max_examples=10)
def test_of_answers_that_come_together_one_counts(make_bed: MakeBed, count: int) -> None:
    async def race(bed: LedgerBed) -> None:
        pair = (bed.ledger, bed.process())
        await pair[0].add(BackgroundRun("r1", "ada", "1", bed.now), 10)
        await pair[0].begin("r1")
        await pair[0].ask("r1", 1, {"number": 7})
        given = [pair[n % 2].answer("ada", "r1", 7, {"action": "accept", "content": {"n": n}}) for n in range(count)]
        counted = await asyncio.gather(*given)
        beat = await pair[0].beat("r1", 1)
        assert beat.answer is not None
        assert counted == [n == beat.answer["content"]["n"] for n in range(count)]

    with opened(make_bed) as (bed, loop):
        loop.run(asyncio.wait_for(race(bed), 60))
