"""Background runs in real processes, asked and killed at each step."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters

from answering import WRITE, Answering, asking_host
from background.run_desk import LONG_SECONDS, ME, Desk, desk
from callers import asking
from faults.watched import Place
from ot.background import questions
from ot.execution.caller import Answer, Question
from ot.execution.waiting_questions import WaitingQuestions

pytestmark = pytest.mark.anyio

STDIO_SECONDS = 30.0
CONFIG = "logs: {level: WARNING}\nengines: {use: portable}\n"
COMMAND = str(Path(sys.executable).parent / "onetool")
START = 'echo $$ > "$1"; exec "$2" serve'
NOTES = '''
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Notes that are kept in a file."""

import time
from pathlib import Path


def note(*, text: str, seconds: float = 0) -> str:
    """Write a line, and answer after a while."""
    with Path({file!r}).open("a") as file:
        file.write(text + "\\n")
    time.sleep(seconds)
    return text.upper()
'''


@asynccontextmanager
async def served(place: Place) -> AsyncGenerator[Callable[[str], Any]]:
    """Yield what runs a program at a server of its own and returns its value."""
    args = ["-c", START, "sh", str(place.home / "pid"), COMMAND]
    parameters = StdioServerParameters(command="/bin/sh", args=args, env=place.environment(), cwd=str(place.cwd))
    async with Client(parameters, read_timeout_seconds=STDIO_SECONDS) as client:

        async def run(command: str) -> Any:
            result: Any = await client.call_tool("run", {"command": command})
            assert not result.is_error, result.content
            return yaml.safe_load(result.content[0].text)

        yield run


def pid_of(place: Place) -> int:
    return int((place.home / "pid").read_text())


async def lines_of(file: Path, count: int) -> None:
    """Return when *file* has that many lines."""
    async with asyncio.timeout(STDIO_SECONDS):
        while not file.exists() or len(file.read_text().splitlines()) < count:  # noqa: ASYNC110, ASYNC240 - written by another process
            await asyncio.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place.make(tmp_path, CONFIG)
    folder = made.home / ".onetool" / "tools" / "notes"
    folder.mkdir(parents=True)
    (folder / "notes_tools.py").write_text(NOTES.format(file=str(tmp_path / "notes.txt")))
    return made


async def test_a_client_begins_a_run_polls_and_reads_and_a_killed_server_is_reported_by_the_next(
    place: Place, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    async with served(place) as run:
        id = (await run("ot.background(command='return notes.note(text=\"a\")', name='first')"))["id"]
        state = await run(f"ot.run_state(id={id!r}, wait=20)")
        assert ("done", ["A"]) == (state["state"], state["texts"])
        cut = "notes.note(text='b')\nnotes.note(text='c', seconds=60)\nnotes.note(text='d')"
        id = (await run(f"ot.background(command={cut!r})"))["id"]
        await lines_of(notes, 3)
        os.kill(pid_of(place), signal.SIGKILL)
    async with served(place) as run:
        state = await run(f"ot.run_state(id={id!r})")
        assert "stopped" == state["state"]
        report = await run(f"ot.result(handle={state['handle']!r}, path='.')")
        assert ["B"] == [call["value"] for call in report["done"]]
        assert [("notes.note", 2)] == [(call["tool"], call["line"]) for call in report["unknown"]]
        assert [{"tool": "notes.note", "line": 3, "most": 1}] == report["not_started"]
        assert ["stopped", "done"] == [run["state"] for run in await run("ot.run_state()")]
    assert "a\nb\nc\n" == notes.read_text()


PROGRAM = Path(__file__).parent / "killed_at_a_step.py"
STEPS = 10


def killed(directory: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return what became of a run for each step and round."""
    done = subprocess.run(
        [sys.executable, PROGRAM, directory, str(rounds)], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def nothing_doubled_and_nothing_lost(run: dict[str, Any]) -> None:
    added, states = run["added"], Counter(state for _, state in run["entries"])
    assert len(set(added)) == len(added), run
    assert {number for number, state in run["entries"] if state == "done"} <= set(added), run
    # What is not known to be done is told to be unknown: no effect is without an entry.
    assert len(added) <= states["done"] + states["unknown"], run
    if run["state"] == "done":
        assert added == [0, 1, 2], run
    else:
        assert (run["state"], bool(states)) == ("stopped", True), run
        assert all(any(f"- {word}: " in text for text in run["texts"]) for word in ("done", "unknown") if states[word])


def check(runs: list[dict[str, Any]], rounds: int) -> None:
    assert Counter(run["step"] for run in runs) == dict.fromkeys({run["step"] for run in runs}, rounds)
    assert len(runs) == STEPS * rounds
    for run in runs:
        nothing_doubled_and_nothing_lost(run)
    again = {run["step"] for run in runs if run["state"] == "done"}
    assert {"the run has begun", "the run's end is committed"} <= again
    assert not again & {"the call is committed, and not sent", "the call is answered"}


@pytest.mark.timeout(240)
def test_b1_fifty_kills_at_the_steps_of_the_ledger_double_nothing(tmp_path: Path) -> None:
    check(killed(tmp_path, 5, 200), 5)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_b1_fifty_kills_at_each_step_of_the_ledger_double_nothing(tmp_path: Path) -> None:
    check(killed(tmp_path, 50, 1000), 50)


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
    monkeypatch.setattr(questions, "QUESTION_SECONDS", 2.7)
    config = ASKS | {"background": {"run_seconds": 2.5}}
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
