"""The library: its questions, its observers, and background runs that go on while it is open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from onetool_run import (
    Answer,
    CallEnded,
    CallStarted,
    OneTool,
    Printed,
    Progress,
    Question,
    QuestionAnswered,
    QuestionAsked,
    RunEvent,
)
from onetool_run.questions import CallbackQuestion
from ot.errors import CannotAsk
from pace import PATIENCE

pytestmark = pytest.mark.anyio

TWICE = """
found = []
for name in "ab":
    try:
        found.append(desk.write(note=name))
    except PermissionError as error:
        found.append(str(error))
found
"""


class Desk:
    """A tool that asks first, and what it was called with."""

    def __init__(self, directory: Path) -> None:
        self.written: list[str] = []
        self.asked: list[Question] = []
        self._directory = directory

    def write(self, *, note: str) -> str:
        """Write a note."""
        self.written.append(note)
        return "written"

    def open(self, answer: Any = None, **options: Any) -> OneTool:
        """Return a OneTool in which it asks first; *answer* is what its user says."""

        async def ask(question: Question) -> Any:
            self.asked.append(question)
            if isinstance(answer, Exception):
                raise answer
            return answer

        config = {"policy": {"ask": ["desk.*"]}}
        return OneTool(
            self._directory,
            config_dir=self._directory / "user",
            engine="portable",
            config=config,
            packs={"desk": [self.write]},
            ask=None if answer is None else ask,
            **options,
        )


async def test_without_a_callback_a_tool_that_asks_is_denied_with_the_line_that_would_allow_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open() as ot:
        reply = await ot.run("desk.write(note='a')")
    assert reply.is_error and not desk.written
    assert 'policy: {allow: ["desk.write"]}' in reply.text


async def test_the_callback_is_told_which_tool_and_with_what(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open("run") as ot:
        await ot.run("desk.write(note='a')")
    (question,) = desk.asked
    assert (question.kind, question.tool, question.arguments) == ("consent", "desk.write", {"note": "a"})
    assert "desk.write: a program wants to call it." in question.message


async def test_a_plain_function_answers_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open() as ot:
        assert (await ot.run("desk.write(note='a')", ask=lambda _: "once")).value == "written"
    assert desk.written == ["a"]


async def test_run_allows_the_rest_of_the_run_and_the_next_run_asks_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open("run") as ot:
        for _ in range(2):
            assert (await ot.run(TWICE)).value == ["written", "written"]
    assert len(desk.asked) == 2


async def test_once_allows_one_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open("once") as ot:
        value = (await ot.run(TWICE)).value
    assert value[0] == "written" and "the user allowed 1 call" in value[1]
    assert (desk.written, len(desk.asked)) == (["a"], 1)


@pytest.mark.parametrize("answer", ["deny", "yes", True, {"decision": "allow"}, ValueError("down")])
async def test_everything_else_is_a_no_for_the_whole_run(tmp_path: Path, answer: Any) -> None:
    desk = Desk(tmp_path)
    async with desk.open(answer) as ot:
        value = (await ot.run(TWICE)).value
    assert not desk.written and len(desk.asked) == 1
    assert ("the ask callback failed with ValueError" if isinstance(answer, Exception) else "said no") in value[0]


async def test_always_is_written_into_the_configuration(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.open("always") as ot:
        assert (await ot.run("desk.write(note='a')")).value == "written"
    assert "desk.write" in (tmp_path / "user" / "onetool.yaml").read_text()


async def test_a_run_can_bring_its_own_callback(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    async def yes(question: Question) -> str:
        return "run"

    async with desk.open("deny") as ot:
        assert (await ot.run("desk.write(note='a')", ask=yes)).value == "written"  # pyright: ignore[reportArgumentType] - any text may come
        assert (await ot.run("desk.write(note='a')")).is_error


async def test_a_form_is_answered_by_a_mapping_and_declined_by_all_else() -> None:
    form = Question("Who are you?", {"type": "object"})

    async def answered(given: Any) -> Answer:
        async def ask(question: Question) -> Mapping[str, Any]:
            return given

        return await CallbackQuestion(ask, 5)(form)

    assert await answered({"name": "Ada"}) == Answer("accept", {"name": "Ada"})
    assert [(await answered(given)).action for given in ("deny", "run", None)] == ["decline"] * 3


async def test_an_address_is_agreed_to_by_a_mapping_and_declined_by_all_else() -> None:
    async def answered(given: Any) -> Answer:
        async def ask(question: Question) -> Mapping[str, Any]:
            assert question.url == "https://login.example/"
            return given

        return await CallbackQuestion(ask, 5)(Question("Log in?", {}, "url", url="https://login.example/"))

    assert [(await answered(given)).action for given in ({}, "once", None)] == ["accept", "decline", "decline"]


async def test_who_does_not_answer_in_time_has_said_nothing() -> None:
    async def never(question: Question) -> Mapping[str, Any]:
        await asyncio.Event().wait()
        return {}

    with pytest.raises(CannotAsk, match=r"nobody answered within 0\.01 s"):
        await CallbackQuestion(never, 0.01)(Question("May I?", {}, "consent"))


class Events:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.all: list[RunEvent] = []
        self.threads: set[int] = set()

    def __call__(self, event: RunEvent) -> None:
        self.all.append(event)
        self.threads.add(threading.get_ident())

    def of[E](self, kind: type[E]) -> list[E]:
        """Return those of one kind."""
        return [event for event in self.all if isinstance(event, kind)]


def opened(directory: Path, function: Callable[..., Any], **options: Any) -> OneTool:
    """Return a OneTool that offers *function* as one of the pack `me`."""
    options.setdefault("engine", "portable")
    return OneTool(directory, config_dir=directory / "user", packs={"me": [function]}, **options)


async def test_a_call_is_told_when_it_starts_and_when_it_ends(tmp_path: Path) -> None:
    def add(a: int, b: int = 0) -> int:
        """Add."""
        return a + b

    events = Events()
    async with opened(tmp_path, add, observe=events) as ot:
        reply = await ot.run("me.add(1, b=2)\ntry:\n    me.add(1, b='x')\nexcept Exception:\n    pass")
    started, ended = events.of(CallStarted), events.of(CallEnded)
    assert [(call.tool, call.args, call.kwargs) for call in started] == [
        ("me.add", (1,), {"b": 2}),
        ("me.add", (1,), {"b": "x"}),
    ]
    assert [(call.call, call.error) for call in ended] == [(1, ""), (2, "InvalidArguments")]
    assert (ended[0].chars > 0, ended[1].chars) == (True, 0)
    assert {event.run for event in (*started, *ended)} == {reply.run}
    assert [type(event) for event in events.all] == [CallStarted, CallEnded] * 2


@pytest.mark.parametrize("engine", ["portable", "auto"])
async def test_prints_are_told_while_the_program_runs(tmp_path: Path, engine: str) -> None:
    events, seen = Events(), list[str]()

    async def look() -> None:
        """Look at what was told so far."""
        async with asyncio.timeout(PATIENCE):
            while not events.of(Printed):  # noqa: ASYNC110 - the call and the print come by two ways
                await asyncio.sleep(0.01)
        seen.append("".join(event.text for event in events.of(Printed)))

    async with opened(tmp_path, look, engine=engine, observe=events) as ot:
        reply = await ot.run("print('before')\nme.look()\nprint('after')")
    assert seen[0].startswith("before") and "after" not in seen[0]
    assert "".join(event.text for event in events.of(Printed)) == "before\nafter\n"
    assert reply.texts[0] == "before\nafter\n"
    assert events.threads == {threading.get_ident()}


async def test_progress_of_a_tool_is_told(tmp_path: Path) -> None:
    pack = tmp_path / "user" / "tools" / "far" / "far_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text(
        "import ot_sdk\n\n\ndef go() -> None:\n    print('step')\n    ot_sdk.progress(1, 3, 'one of three')\n"
    )
    events = Events()
    async with opened(tmp_path, len, observe=events) as ot:
        reply = await ot.run("far.go()")
    assert not reply.is_error, reply.text
    assert Progress(1, 3, "one of three", "far.go", reply.run) in events.all
    assert Printed(reply.run, "step\n", "far.go") in events.all


async def test_questions_and_their_answers_are_told(tmp_path: Path) -> None:
    def send() -> str:
        """Send."""
        return "sent"

    async def ask(question: Question) -> Any:
        return "run"

    events, of_run = Events(), Events()
    config = {"policy": {"ask": ["me.*"]}}
    async with opened(tmp_path, send, observe=events, ask=ask, config=config) as ot:
        await ot.run("me.send()", observe=of_run)
    assert [type(event) for event in events.all] == [CallStarted, QuestionAsked, QuestionAnswered, CallEnded]
    assert events.of(QuestionAsked)[0].question.tool == "me.send"
    assert events.of(QuestionAnswered)[0].answer.action == "accept"
    assert of_run.all == events.all


async def test_an_observer_that_raises_ends_nothing(tmp_path: Path) -> None:
    def broken(event: RunEvent) -> None:
        raise ValueError("no room")

    events = Events()
    async with opened(tmp_path, abs, observe=broken) as ot:
        assert (await ot.run("print(1)\nme.abs(-2)", observe=events)).value == 2
    assert len(events.all) >= 3


async def test_runs_go_on_while_it_is_open_and_are_reported_afterwards(tmp_path: Path) -> None:
    added: list[int] = []
    waits = asyncio.Event()

    def add(*, n: int) -> int:
        """Add a number."""
        added.append(n)
        return n * 2

    async def wait() -> None:
        """Wait for ever."""
        waits.set()
        await asyncio.Event().wait()

    def opened() -> OneTool:
        return OneTool(cwd=tmp_path, config_dir=tmp_path / "user", engine="portable", packs={"counter": [add, wait]})

    async with opened() as tool:
        id = (await tool.run("ot.background(command='return counter.add(n=1)')")).value["id"]
        assert ["2"] == (await tool.run(f"ot.run_state(id={id!r}, wait=20)")).value["texts"]
        cut = "counter.add(n=2)\ncounter.wait()\ncounter.add(n=3)"
        id = (await tool.run(f"ot.background(command={cut!r})")).value["id"]
        async with asyncio.timeout(20):
            await waits.wait()
    async with opened() as tool:
        state = (await tool.run(f"ot.run_state(id={id!r})")).value
        assert "stopped" == state["state"]
        report = (await tool.run(f"ot.result(handle={state['handle']!r}, path='.')")).value
        assert [("counter.add", 4)] == [(call["tool"], call["value"]) for call in report["done"]]
        assert ["counter.wait"] == [call["tool"] for call in report["unknown"]]
    assert [1, 2] == added
