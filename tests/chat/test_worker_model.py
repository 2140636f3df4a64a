"""The model that the tools of a worker may ask: answered by the server, within the budget of their run."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from chat.chat_desk import PROVIDERS, calls, text
from chat.test_tool_model import ADA, ASKING, KEY, settings, words_of
from chat.wire_server import Scripted, WireServer, Write, anthropic_error, line, serving
from ot.config.models import Chat
from ot.errors import ChatError
from ot.execution.call_context import ModelBudget
from ot.host import MODEL_QUESTIONS
from ot.logs import current_run
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

WORKING = '''
    """Asks from a worker."""

    import os

    import ot_sdk

    PERSON = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }


    def shorten(*, text: str) -> str:
        """Sum up."""
        return ot_sdk.llm.ask(f"Sum up: {text}")


    async def shorten_later(*, text: str) -> str:
        """Sum up."""
        return await ot_sdk.llm.aask(f"Sum up: {text}")


    def person(*, text: str) -> dict:
        """Find a person."""
        return ot_sdk.llm.extract(text, PERSON)


    async def person_later(*, text: str) -> dict:
        """Find a person."""
        return await ot_sdk.llm.aextract(text, PERSON)


    async def blocked(*, text: str) -> str:
        """Ask in the wrong way."""
        return ot_sdk.llm.ask(text)


    def names(*, text: str) -> list:
        """Find names."""
        return ot_sdk.llm.extract(text, {"type": "array"})


    def letters(*, text: str) -> list:
        """Spell what goes wrong, and all that the process was given, so that no secret is taken out of it."""
        try:
            ot_sdk.llm.ask(text)
        except ot_sdk.ChatError as error:
            return list(f"{error.kind}: {error}, {dict(os.environ)}")
'''


@asynccontextmanager
async def asking(
    directory: Path, *script: Scripted, provider: str = "ollama", chat: Mapping[str, Any] | None = None
) -> AsyncGenerator[tuple[Workspace, WireServer]]:
    """Yield a workspace whose pack ``working`` is in a worker and ``asking`` in the server, and a scripted model."""
    async with serving(*script) as wire:
        config = settings(provider, wire.url)
        config["chat"] |= chat or {}
        pack = directory / "user" / "tools" / "working"
        pack.mkdir(parents=True)
        (pack / "working_tools.py").write_text(dedent(WORKING), encoding="utf-8")
        async with running_app(directory, {"asking": ASKING}, config) as app:
            yield app, wire


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key")


# ---------------------------------------------------------------- questions


@pytest.mark.scenario("002-08")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_tools_of_a_worker_ask_the_same_model(provider: str, tmp_path: Path) -> None:
    words, found = text(provider, "It is ", "short."), calls(provider, ("answer", ADA))
    async with asking(tmp_path, words, words, found, found, provider=provider) as (app, wire):
        for tool in ("shorten", "shorten_later"):
            assert value_of(await app.run(f"working.{tool}(text='a long story')")) == "It is short."
        for tool in ("person", "person_later"):
            assert json.loads(value_of(await app.run(f"working.{tool}(text='Ada is 36.')"))) == ADA
    assert words_of(wire.requests[0]) == words_of(wire.requests[1]) == [("user", "Sum up: a long story")]
    assert not wire.requests[0].get("tools") and len(wire.requests[3]["tools"]) == 1


async def test_the_key_never_reaches_the_worker_even_where_the_service_repeats_it(tmp_path: Path) -> None:
    refused = anthropic_error(401, f"authentication_error for {KEY}")
    async with asking(tmp_path, refused, provider="anthropic") as (app, wire):
        said = "".join(json.loads(value_of(await app.run("working.letters(text='x')"))))
    assert said.startswith("ChatRefused: Anthropic refused the request (401)")
    assert "[secret:ANTHROPIC_API_KEY]" in said and KEY not in said
    assert KEY in wire.headers[0]


async def test_mistakes_are_told_as_in_the_server(tmp_path: Path) -> None:
    async with asking(tmp_path, text("ollama", "x")) as (app, wire):
        said = error_of(await app.run("working.names(text='x')"))
        assert "ValueError: the schema must be that of an object" in said
        assert "write `await ot_sdk.llm.aask(...)`" in error_of(await app.run("working.blocked(text='x')"))
    assert wire.requests == []


class RunsLogged(logging.Handler):
    """Notes the run that each record of ToolModel is told for."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.runs.append(current_run.get())


async def test_the_log_tells_which_run_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logged, logger = RunsLogged(), logging.getLogger("ot.chat.tool_model")
    caplog.set_level("INFO", logger.name)
    logger.addHandler(logged)
    try:
        async with asking(tmp_path, text("ollama", "x")) as (app, _):
            replies = [await app.run("working.shorten(text='x')") for _ in range(2)]
    finally:
        logger.removeHandler(logged)
    assert logged.runs == [reply.meta["run"] for reply in replies]


@pytest.mark.scenario("002-08")
async def test_without_a_key_worker_and_server_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    async with asking(tmp_path, text("anthropic", "x"), provider="anthropic") as (app, wire):
        told = [error_of(await app.run(f"{pack}.shorten(text='x')")) for pack in ("asking", "working")]
    assert "ChatError: there is no key for Anthropic's models: put ANTHROPIC_API_KEY into the environment" in told[0]
    assert told[0].replace("asking", "working") == told[1]
    assert wire.requests == []


# ---------------------------------------------------------------- what they cost


async def test_all_tools_of_a_run_ask_on_one_budget(tmp_path: Path) -> None:
    program = "[asking.shorten(text='a'), working.shorten(text='b'), {last}.shorten(text='c')]"
    async with asking(tmp_path, text("ollama", "Short."), chat={"tool_questions": 2}) as (app, wire):
        for last in ("asking", "working"):
            said = error_of(await app.run(program.format(last=last)))
            assert "ChatError: the tools of this run have asked the model 2 times, and may do no more" in said
            assert "raise chat.tool_questions" in said
    assert len(wire.requests) == 4, "each run has a budget of its own"


async def test_a_correction_counts_as_a_question(tmp_path: Path) -> None:
    async with asking(tmp_path, text("ollama", "No."), chat={"tool_questions": 1}) as (app, wire):
        assert "chat.tool_questions" in error_of(await app.run("working.person(text='x')"))
    assert len(wire.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_tokens_are_counted_as_the_service_counts_them(provider: str, tmp_path: Path) -> None:
    program = "[asking.shorten(text=str(number)) for number in range(9)]"
    async with asking(tmp_path, text(provider, "Short."), provider=provider, chat={"tool_tokens": 16}) as (app, wire):
        assert "used 30 tokens of the model" in error_of(await app.run(program))
    assert len(wire.requests) == 2


def test_a_budget_of_nothing_refuses_the_first_question() -> None:
    for nothing, setting in ((Chat(tool_questions=0), "tool_questions"), (Chat(tool_tokens=0), "tool_tokens")):
        with pytest.raises(ChatError, match=f"raise chat.{setting}"):
            ModelBudget(nothing).spend_question()


# ---------------------------------------------------------------- at the same time


class Held:
    """A model that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.full, self.go = asyncio.Event(), asyncio.Event()
        self.open = self.most = 0

    async def pour(self, write: Write) -> None:
        self.open += 1
        self.most = max(self.open, self.most)
        if self.open == MODEL_QUESTIONS:
            self.full.set()
        await self.go.wait()
        self.open -= 1
        await write("".join(text("ollama", "Short.").pieces))

    def scripted(self) -> Scripted:
        return Scripted(pour=self.pour, kind="application/x-ndjson")


async def test_only_a_few_questions_are_asked_at_the_same_time_and_the_others_wait(tmp_path: Path) -> None:
    held = Held()
    async with asking(tmp_path, held.scripted()) as (app, wire), asyncio.timeout(PATIENCE):
        packs = ["asking", "working"] * MODEL_QUESTIONS
        runs = [asyncio.ensure_future(app.run(f"{pack}.shorten(text='x')")) for pack in packs]
        await held.full.wait()
        assert value_of(await app.run("'a run that asks nothing is not held up'"))
        assert len(wire.requests) == MODEL_QUESTIONS
        held.go.set()
        assert {value_of(await run) for run in runs} == {"Short."}
    assert held.most == MODEL_QUESTIONS and len(wire.requests) == len(packs)


async def test_a_question_waits_for_its_place_no_longer_than_for_its_answer(tmp_path: Path) -> None:
    held = Held()
    async with asking(tmp_path, held.scripted(), chat={"seconds": 0.5}) as (app, wire), asyncio.timeout(PATIENCE):
        for _ in range(MODEL_QUESTIONS):
            await app.host.model_places.acquire()
        said = error_of(await app.run("working.shorten(text='x')"))
    assert "there was no answer within 0.5 s (chat.seconds)" in said
    assert wire.requests == []


@pytest.mark.parametrize("pack", ["asking", "working"])
async def test_a_question_ends_with_the_call_that_asked_it(pack: str, tmp_path: Path) -> None:
    started = asyncio.Event()

    async def drip(write: Write) -> None:
        while True:
            await write(line("word ", done=False))
            started.set()
            await asyncio.sleep(0.01)

    async with asking(tmp_path, Scripted(pour=drip, kind="application/x-ndjson")) as (app, wire):
        run = asyncio.ensure_future(app.run(f"{pack}.shorten(text='x')"))
        await asyncio.wait_for(started.wait(), PATIENCE)
        run.cancel()
        await asyncio.wait_for(wire.closed.wait(), PATIENCE)
        with pytest.raises(asyncio.CancelledError):
            await run
        async with asyncio.timeout(PATIENCE):
            for _ in range(MODEL_QUESTIONS):
                await app.host.model_places.acquire()
