"""The library's callback answers questions; whatever is not clearly a yes is a no."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onetool_run import Answer, OneTool, Question
from onetool_run.questions import CallbackQuestion
from ot.errors import CannotAsk

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
