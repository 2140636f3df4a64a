"""Observers are told of calls, prints, progress and questions while the program runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onetool_run import (
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
from pace import PATIENCE

pytestmark = pytest.mark.anyio


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
