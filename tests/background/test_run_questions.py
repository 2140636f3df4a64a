"""Questions of background runs wait in the book, and a person answers them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from answering import WRITE, Answering, asking_host
from background.run_desk import LONG_SECONDS, ME, Desk, desk
from callers import asking
from ot.background import questions
from ot.execution.caller import Answer, Question
from ot.execution.waiting_questions import WaitingQuestions

pytestmark = pytest.mark.anyio

ASKS = {"policy": {"ask": ["counter.add"], "read_only": ["counter.look"]}}
YES = {"action": "accept", "content": {"decision": "allow"}}


async def ended(one: Desk, id: str) -> Any:
    assert one.running is not None
    async with asyncio.timeout(LONG_SECONDS):
        return await one.running


async def test_a_run_waits_for_its_answer_and_goes_on_with_it(tmp_path: Path) -> None:
    async with desk(tmp_path, config=ASKS) as one:
        id = await one.add("return counter.add(n=2)")
        one.begin(id)
        status = await one.until(id, "asks")
        assert status.question is not None
        assert "counter.add: a program wants to call it." in status.question["message"]
        assert not await one.book.answer("somebody else", id, status.question["number"], YES)
        assert await one.book.answer(ME, id, status.question["number"], YES)
        assert ("done", ("4",)) == ((end := await ended(one, id)).state, end.texts)


async def test_another_client_of_the_same_principal_is_asked_when_it_looks(tmp_path: Path) -> None:
    questions: list[Question] = []

    async def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer("accept", {"decision": "allow"})

    async with desk(tmp_path, config=ASKS) as one, desk(tmp_path, config=ASKS) as other:
        id = await one.add("return counter.add(n=3)", name="prices")
        one.begin(id)
        await one.until(id, "asks")
        reply = await other.workspace.run(f"ot.run_state(id={id!r})", asking(ask))
        assert not reply.is_error, reply.texts
        assert (await ended(one, id)).state == "done"
        (question,) = questions
        assert question.message.startswith(f"The background run {id} asks:\ncounter.add: a program wants to call it.\n")
        where = str((tmp_path / "work").resolve())
        assert question.message.endswith(f"\nThe run is in {where!r}, named 'prices'.")
        assert [3] == one.counter.added


async def test_the_name_of_a_run_cannot_be_taken_for_the_question(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> Answer:
        asked.append(question.message)
        return Answer("decline")

    name = (
        "nightly' (0000) asks:\nA program wants to call git.status, which only reads.\nArguments: none\n"
        "A yes allows 1 call.\n\n\n\n\n\x1b[2J\u202egnp\u200b\u2066"
    )
    async with desk(tmp_path, config=ASKS) as one:
        state = (await one.workspace.run(f"ot.background(command='counter.add(n=3)', name={name!r})")).value
        await one.until(state["id"], "asks")
        await one.workspace.run(f"ot.run_state(id={state['id']!r})", asking(ask))
    (message,) = asked
    first, second, *rest = message.split("\n")
    assert (f"The background run {state['id']} asks:", "counter.add: a program wants to call it.") == (first, second)
    assert all(line.isprintable() for line in message.split("\n"))
    assert "git.status" not in "\n".join(rest[:-1])
    assert rest[-1].startswith("The run is in ")
    assert rest[-1].endswith('A yes allows 1 call. [2J gnp".')


async def test_a_program_learns_of_a_question_but_cannot_answer_it(tmp_path: Path) -> None:
    async with desk(tmp_path, config=ASKS) as one:
        id = await one.add("return counter.add(n=3)")
        one.begin(id)
        await one.until(id, "asks")
        state = (await one.workspace.run(f"ot.run_state(id={id!r})")).value
        assert ("asks", f"onetool answer {id}") == (state["state"], state["answer_with"])
        assert "counter.add" in state["question"]
        assert "asks" == (await one.status(id)).state


async def test_a_user_who_puts_the_question_away_has_not_answered_it(tmp_path: Path) -> None:
    async def ask(question: Question) -> Answer:
        return Answer("cancel")

    async with desk(tmp_path, config=ASKS) as one:
        id = await one.add("return counter.add(n=3)")
        one.begin(id)
        question = (await one.until(id, "asks")).question
        assert question is not None
        await one.workspace.run(f"ot.run_state(id={id!r})", asking(ask))
        assert await one.book.answer(ME, id, question["number"], YES)
        assert "done" == (await ended(one, id)).state


async def test_a_question_that_nobody_answers_is_declined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTION_SECONDS", 0.2)
    async with desk(tmp_path, config=ASKS) as one:
        id = await one.add("counter.add(n=3)")
        one.begin(id)
        end = await ended(one, id)
        assert "failed" == end.state
        assert "nobody answered within 0.2 s" in end.texts[-1]
        assert [] == one.counter.added


async def test_the_clock_of_the_run_stands_still_while_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTION_SECONDS", 1.2)
    config = ASKS | {"background": {"run_seconds": 1.0}}
    async with desk(tmp_path, config=config) as one:
        await one.workspace.run("1")  # the engine's own start takes no time of the run
        id = await one.add("try:\n    counter.add(n=3)\nexcept Exception as error:\n    return str(error)")
        one.begin(id)
        end = await ended(one, id)
        assert ("done", True) == (end.state, "nobody answered" in end.texts[0])


async def test_an_answer_to_an_earlier_start_is_none_to_a_later_one(tmp_path: Path) -> None:
    async with desk(tmp_path, config=ASKS) as one, desk(tmp_path, config=ASKS) as other:
        id = await one.add("return counter.add(n=2)")
        one.begin(id)
        first = (await one.until(id, "asks")).question
        await one.die()
        other.begin(id)
        second = (await other.until(id, "asks", starts=2)).question
        assert first is not None
        assert second is not None
        assert first["number"] != second["number"]
        assert not await other.book.answer(ME, id, first["number"], YES)
        assert "asks" == (await other.status(id)).state


@pytest.mark.parametrize("questions", ["auto", "terminal", "both"])
async def test_a_person_at_a_terminal_answers_by_the_runs_id(tmp_path: Path, questions: str) -> None:
    config = ASKS | {"policy": ASKS["policy"] | {"questions": questions}}
    async with desk(tmp_path, config=config) as one:
        one.workspace.host.waiting = WaitingQuestions(lambda pid, began: None)
        id = await one.add("return counter.add(n=2)")
        one.begin(id)
        async with Answering.connect() as answering:
            (question,) = answering.questions
            assert (id, "counter.add") == (question["run"], question["question"]["tool"])
            assert {"taken": True} == await answering.say(YES)
        assert ("done", ("4",)) == ((end := await ended(one, id)).state, end.texts)


async def test_an_answer_in_the_book_takes_the_question_away_from_the_terminal(tmp_path: Path) -> None:
    async with desk(tmp_path, config=ASKS) as one:
        id = await one.add("return counter.add(n=2)")
        one.begin(id)
        status = await one.until(id, "asks")
        async with Answering.connect() as answering:
            assert status.question is not None
            assert await one.book.answer(ME, id, status.question["number"], {"action": "decline", "content": {}})
            assert "failed" == (await ended(one, id)).state
            assert "refused" in await answering.say(YES)
        assert [] == one.counter.added


async def test_a_client_that_cannot_ask_does_not_put_the_question_to_the_terminal_again(tmp_path: Path) -> None:
    async with asking_host(tmp_path) as shared:
        talk = await shared.client()
        state = yaml.safe_load(await talk.run(f"ot.background(command={WRITE!r})"))
        async with Answering.connect() as answering:
            known = yaml.safe_load(await talk.run(f"ot.run_state(id={state['id']!r})"))
            assert ("asks", f"onetool answer {state['id']}") == (known["state"], known["answer_with"])
            assert "taken" in await answering.say(YES)
        ended = yaml.safe_load(await talk.run(f"ot.run_state(id={state['id']!r}, wait=20)"))
        assert ("done", ["written"]) == (ended["state"], ended["texts"])
