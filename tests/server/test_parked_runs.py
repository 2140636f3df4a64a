"""A parked run waits under a token that is good once, for its caller, until its time is over."""

from __future__ import annotations

import asyncio

import pytest

from ot.errors import CannotAsk
from ot.execution.caller import Answer, AskUser, Question
from ot.runtime.reply import Reply
from ot.runtime.run_events import Progress, RunEvent, TellEvent
from ot.server.parked_runs import NotParked, ParkedRun, ParkedRuns
from pace import PATIENCE

pytestmark = pytest.mark.anyio

ASKED = Question("May I?", {})
YES = Answer("accept", {"decision": "allow"})


async def asks(ask: AskUser, tell: TellEvent) -> Reply:
    """Ask once, and tell the answer."""
    return Reply(((await ask(ASKED)).action,))


async def parked(runs: ParkedRuns, caller: str = "ann", seconds: float = 60) -> ParkedRun:
    """Return a run that has come to its question."""
    run = runs.start(asks, caller, seconds)
    assert await asyncio.wait_for(run.turn(), PATIENCE) is ASKED
    return run


async def reply_of(run: ParkedRun) -> Reply:
    """Return the reply of a run that has no more questions."""
    came = await asyncio.wait_for(run.turn(), PATIENCE)
    assert isinstance(came, Reply)
    return came


async def test_the_answer_goes_to_the_run_that_asked() -> None:
    runs = ParkedRuns()
    first, second = await parked(runs), await parked(runs)
    assert first.token != second.token
    assert len(first.token) >= 43
    taken = runs.take(first.token, "ann")
    assert taken is first
    taken.answer(YES, taken.token)
    assert (await reply_of(first)).texts == ("accept",)
    assert len(runs) == 1
    await runs.aclose()


async def test_a_token_is_void_for_others_and_after_use() -> None:
    runs = ParkedRuns()
    run = await parked(runs)
    token = run.token
    for wrong in ("", token[:-1], token + "x", token.swapcase()):
        with pytest.raises(NotParked):
            runs.take(wrong, "ann")
    for stranger in ("bob", "", "ann ", "ANN"):
        with pytest.raises(NotParked):
            runs.take(token, stranger)
    assert runs.take(token, "ann") is run
    with pytest.raises(NotParked):
        runs.take(token, "ann")
    await runs.end(run)


async def test_one_caller_leaves_room_for_others() -> None:
    runs = ParkedRuns()
    for _ in range(2):
        await asyncio.wait_for(runs.start(asks, "ann", 60, most=2).turn(), PATIENCE)
    with pytest.raises(CannotAsk, match="2 other runs of yours are waiting"):
        await asyncio.wait_for(runs.start(asks, "ann", 60, most=2).turn(), PATIENCE)
    assert await asyncio.wait_for(runs.start(asks, "bob", 60, most=2).turn(), PATIENCE) is ASKED
    await runs.aclose()


async def test_a_run_asks_again_under_another_token() -> None:
    async def twice(ask: AskUser, tell: TellEvent) -> Reply:
        return Reply(((await ask(ASKED)).action, (await ask(ASKED)).action))

    runs = ParkedRuns()
    run = runs.start(twice, "ann", 60)
    tokens: list[str] = []
    for answer in (YES, Answer("decline")):
        assert await asyncio.wait_for(run.turn(), PATIENCE) is ASKED
        tokens.append(run.token)
        runs.take(run.token, "ann").answer(answer, run.token)
    assert (await reply_of(run)).texts == ("accept", "decline")
    assert len(set(tokens)) == 2


async def test_a_run_that_nobody_answers_is_ended() -> None:
    ended = asyncio.Event()

    async def waits(ask: AskUser, tell: TellEvent) -> Reply:
        try:
            await ask(ASKED)
        finally:
            ended.set()
        raise AssertionError("it went on")

    runs = ParkedRuns()
    run = runs.start(waits, "ann", 0.05)
    await asyncio.wait_for(run.turn(), PATIENCE)
    token = run.token
    await asyncio.wait_for(ended.wait(), PATIENCE)
    with pytest.raises(NotParked):
        runs.take(token, "ann")
    await runs.aclose()


async def test_when_all_places_are_taken_nobody_is_asked() -> None:
    runs = ParkedRuns(most=2)
    first, _ = await parked(runs), await parked(runs)

    async def refused(ask: AskUser, tell: TellEvent) -> Reply:
        with pytest.raises(CannotAsk, match="2 other runs"):
            await ask(ASKED)
        return Reply(("refused",))

    assert (await reply_of(runs.start(refused, "ann", 60))).texts == ("refused",)
    runs.take(first.token, "ann").answer(YES, first.token)
    await parked(runs)
    await runs.aclose()
    assert len(runs) == 0


def message_of(event: RunEvent) -> str:
    assert isinstance(event, Progress)
    return event.message


async def test_progress_goes_to_the_request_that_is_open() -> None:
    async def tells(ask: AskUser, tell: TellEvent) -> Reply:
        tell(Progress(message="before"))
        await ask(ASKED)
        tell(Progress(message="after"))
        return Reply(())

    runs, heard = ParkedRuns(), list[str]()
    run = runs.start(tells, "ann", 60)
    run.tell = lambda event: heard.append(f"first: {message_of(event)}")
    await asyncio.wait_for(run.turn(), PATIENCE)
    run.tell = lambda event: heard.append(f"second: {message_of(event)}")
    runs.take(run.token, "ann").answer(YES, run.token)
    await reply_of(run)
    assert heard == ["first: before", "second: after"]


async def test_a_question_that_was_answered_elsewhere_leaves_its_client_the_next_one_and_then_the_reply() -> None:
    elsewhere = asyncio.Event()

    async def start(ask: AskUser, tell: TellEvent) -> Reply:
        first = asyncio.ensure_future(ask(ASKED))
        await elsewhere.wait()
        first.cancel()
        return Reply(((await ask(ASKED)).action,))

    runs = ParkedRuns()
    run = runs.start(start, "ann", 60.0)
    await asyncio.wait_for(run.turn(), PATIENCE)
    token = run.token
    elsewhere.set()
    await asyncio.wait_for(changed(run, token), PATIENCE)
    taken = runs.take(token, "ann")
    taken.answer(Answer("decline"), token)
    assert ASKED is await asyncio.wait_for(taken.turn(), PATIENCE)
    runs.take(run.token, "ann").answer(YES, run.token)
    assert (await reply_of(run)).texts == ("accept",)


async def changed(run: ParkedRun, token: str) -> None:
    """Return when the run waits under another token."""
    while run.token in ("", token):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.005)
