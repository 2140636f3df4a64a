"""Conversations with scripted models of both providers, about the real tools of a real Workspace."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from chat.chat_desk import PROVIDERS, calls, require_valid, results, talking, text
from chat.wire_server import Scripted, Write
from onetool_chat.errors import ChatRefused, TooManyTurns
from pace import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", PROVIDERS)]


@pytest.mark.scenario("004-01", "004-15", "004-16")
async def test_a_model_asks_for_two_tools_at_once_and_answers_from_both(provider: str, tmp_path: Path) -> None:
    wanted = calls(provider, ("lamp_switch", {"room": "hall"}), ("run", {"command": "lamp.switch(room='attic')"}))
    async with talking(tmp_path, provider, wanted, text(provider, "Both ", "are on.")) as desk:
        answer = await desk.talk.ask("turn on the lamps")
    assert (answer.text, answer.turns) == ("Both are on.", 2)
    assert answer.usage.input == 20 and answer.usage.output == 10
    assert desk.seen.words.endswith("Both are on.")
    first, second = results(provider, desk.wire.requests[1])
    assert first["content"] == '{"room":"hall","on":true}'
    assert second["content"] == '{"room":"attic","on":true}'
    # Both went through the one door, whose observers saw them.
    assert sorted(desk.observed.tools) == ["lamp.switch", "lamp.switch"]
    assert [record.error for record in desk.observed.records] == ["", ""]


async def test_a_model_is_told_of_its_tools_in_its_provider_s_words(provider: str, tmp_path: Path) -> None:
    async with talking(tmp_path, provider, text(provider, "ok")) as desk:
        await desk.talk.ask("hello")
    tools = desk.wire.requests[0]["tools"]
    told = [tool if provider == "anthropic" else tool["function"] for tool in tools]
    assert [tool["name"] for tool in told] == ["run", "lamp_away", "lamp_broken", "lamp_hang", "lamp_switch"]
    schema = told[-1]["input_schema" if provider == "anthropic" else "parameters"]
    assert schema["properties"]["room"] == {"type": "string", "description": "Where the lamp is"}
    assert schema["required"] == ["room"]


@pytest.mark.scenario("004-12", "004-19", "004-20")
async def test_failures_are_answers_in_plain_words(provider: str, tmp_path: Path) -> None:
    wanted = [
        ("lamp_broken", {"room": "hall"}),
        ("lamp_switch", {"where": "hall"}),
        ("lamp_away", {}),
        ("run", {"program": "1"}),
    ]
    async with talking(tmp_path, provider, calls(provider, *wanted), text(provider, "sorry")) as desk:
        await desk.talk.ask("try")
    broken, wrong, away, run = (result["content"] for result in results(provider, desk.wire.requests[1]))
    assert "lamp.broken failed: RuntimeError: the lamp of hall is broken" in broken
    assert "'where'" in wrong and "lamp.switch(room: str, on: bool = True)" in wrong
    assert "service unavailable: lamp.away failed: ConnectionRefusedError" in away
    assert "run needs one argument, command" in run
    assert all(answer.is_error for answer in desk.seen.answers.values())
    if provider == "anthropic":
        assert all(result["is_error"] for result in results(provider, desk.wire.requests[1]))


@pytest.mark.scenario("004-03")
async def test_a_tool_that_was_not_offered_is_unknown_even_where_it_exists(
    provider: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = calls(provider, ("file_read", {"path": "x"}), ("lamp_swich", {"room": "hall"}))
    async with talking(tmp_path, provider, wanted, text(provider, "ok")) as desk:
        with caplog.at_level(logging.WARNING):
            await desk.talk.ask("read it")
    first, second = (result["content"] for result in results(provider, desk.wire.requests[1]))
    assert "unknown tool: there is no tool 'file_read'" in first and "lamp_switch" in first
    assert "did you mean 'lamp_switch'?" in second
    assert "a model asked for an unknown tool: file_read" in caplog.text
    assert desk.observed.tools == []


@pytest.mark.scenario("004-21")
async def test_one_call_of_four_that_hangs_times_out_and_the_others_are_delivered(
    provider: str, tmp_path: Path
) -> None:
    """L08."""
    rooms = [("lamp_switch", {"room": room}) for room in ("a", "b", "c")]
    async with talking(
        tmp_path,
        provider,
        calls(provider, rooms[0], ("lamp_hang", {}), *rooms[1:]),
        text(provider, "ok"),
        config={"limits": {"call_seconds": 0.5}},
    ) as desk:
        await asyncio.wait_for(desk.talk.ask("go"), PATIENCE)
    told = [result["content"] for result in results(provider, desk.wire.requests[1])]
    assert [answer for answer in told if "room" in answer] == [f'{{"room":"{r}","on":true}}' for r in "abc"]
    assert "lamp.hang did not answer within 0.5 s and was cancelled" in told[1]
    assert 0.5 <= desk.seen.seconds["lamp_hang"] < 10


async def test_a_model_that_asks_for_tools_for_ever_is_stopped_after_25_turns(provider: str, tmp_path: Path) -> None:
    """L05."""
    async with talking(tmp_path, provider, calls(provider, ("lamp_switch", {"room": "hall"}))) as desk:
        with pytest.raises(TooManyTurns, match="after 25 turns"):
            await desk.talk.ask("go")
        assert len(desk.wire.requests) == 25
        # Where there are ids, they were the same every time: only the first call was made.
        assert len(desk.observed.tools) == (24 if provider == "ollama" else 1)
        if provider != "ollama":
            require_valid(desk.talk.history)
        desk.wire.script = [text(provider, "I stopped")]
        assert (await desk.talk.ask("and now?")).text == "I stopped"


async def test_a_cancelled_question_leaves_a_history_that_can_go_on(provider: str, tmp_path: Path) -> None:
    wanted = calls(provider, ("lamp_switch", {"room": "hall"}), ("lamp_hang", {}))
    async with talking(tmp_path, provider, wanted, text(provider, "ok")) as desk:
        asking = asyncio.ensure_future(desk.talk.ask("go"))
        async with asyncio.timeout(PATIENCE):
            await desk.seen.first_answer.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        if provider != "ollama":
            require_valid(desk.talk.history)
        await desk.talk.ask("what happened?")
    done, cancelled = (result["content"] for result in results(provider, desk.wire.requests[1]))
    assert done == '{"room":"hall","on":true}'
    assert "cancelled; whether it took effect is unknown" in cancelled


async def test_questions_that_come_together_are_answered_one_after_the_other(provider: str, tmp_path: Path) -> None:
    async with talking(tmp_path, provider, text(provider, "first"), text(provider, "second")) as desk:
        answers = await asyncio.gather(desk.talk.ask("a"), desk.talk.ask("b"))
    assert [answer.text for answer in answers] == ["first", "second"]
    assert [message["content"] for message in desk.wire.requests[1]["messages"] if message["role"] == "user"] == [
        "a",
        "b",
    ]


async def test_secrets_never_reach_the_model(provider: str, tmp_path: Path) -> None:
    pack = {
        "lamp": '''
        def token() -> str:
            """Tell too much."""
            return "the token is hunter2-hunter2"
    '''
    }
    (tmp_path / "user").mkdir()
    secrets = tmp_path / "user" / "secrets.yaml"
    secrets.write_text("LAMP_TOKEN: hunter2-hunter2\n")
    secrets.chmod(0o600)
    async with talking(
        tmp_path, provider, calls(provider, ("lamp_token", {})), text(provider, "ok"), packs=pack, config={}
    ) as desk:
        await desk.talk.ask("go")
    (told,) = results(provider, desk.wire.requests[1])
    assert told["content"].endswith("the token is [secret:LAMP_TOKEN]")


async def test_a_large_result_is_stored_and_the_model_is_told_how_to_page_it(provider: str, tmp_path: Path) -> None:
    pack = {
        "lamp": '''
        def log() -> list:
            """Return much."""
            return [f"line {number}" for number in range(20_000)]
    '''
    }
    async with talking(tmp_path, provider, calls(provider, ("lamp_log", {})), text(provider, "ok"), packs=pack) as desk:
        await desk.talk.ask("go")
    (told,) = results(provider, desk.wire.requests[1])
    assert "ot.result(handle=" in told["content"] and len(told["content"]) < 5000


async def test_a_question_that_is_refused_leaves_the_history(provider: str, tmp_path: Path) -> None:
    long = Scripted(['{"error": "prompt is too long"}'], 400, kind="application/json")
    async with talking(tmp_path, provider, text(provider, "hello"), long, text(provider, "ok")) as desk:
        await desk.talk.ask("hi")
        with pytest.raises(ChatRefused, match="400"):
            await desk.talk.ask("a whole book")
        assert (await desk.talk.ask("shorter")).text == "ok"
        sent = desk.wire.requests[-1]["messages"]
        assert [message["content"] for message in sent if message["role"] == "user"] == ["hi", "shorter"]
        desk.talk.begin()
        await desk.talk.ask("anew")
        assert len(desk.wire.requests[-1]["messages"]) == 1


async def test_what_a_tool_said_is_cut_when_the_service_refuses_it(provider: str, tmp_path: Path) -> None:
    refused = Scripted(['{"error": "prompt is too long"}'], 400, kind="application/json")
    program = calls(provider, ("run", {"command": "'long ' * 5000"}))
    async with talking(tmp_path, provider, program, refused, text(provider, "ok")) as desk:
        with pytest.raises(ChatRefused):
            await desk.talk.ask("go")
        assert (await desk.talk.ask("and now?")).text == "ok"
    assert desk.seen.forgotten == [(0, 1)]
    (whole,), (cut,) = (results(provider, request) for request in desk.wire.requests[1:])
    assert len(whole["content"]) >= 25_000 and len(cut["content"]) < 3000
    assert cut["content"].endswith("[cut here: the whole text is too long for this conversation]")


async def test_words_that_came_before_the_user_stopped_them_stay(provider: str, tmp_path: Path) -> None:
    # Without what says that it ends.
    begun = text(provider, "The answer is", " long").pieces[: -3 if provider == "openai" else -2]

    async def wait(write: Write) -> None:
        await asyncio.sleep(PATIENCE)

    async with talking(tmp_path, provider, Scripted(begun, pour=wait), text(provider, "ok")) as desk:
        asking = asyncio.ensure_future(desk.talk.ask("go"))
        async with asyncio.timeout(PATIENCE):
            await desk.seen.first_words.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await desk.talk.ask("go on")
        sent = [(one["role"], str(one["content"])) for one in desk.wire.requests[1]["messages"]]
    assert [role for role, _ in sent] == ["user", "assistant", "user"]
    assert sent[1][1].startswith("The answer is") and sent[1][1].endswith("[the user stopped the answer here]")


async def test_the_oldest_questions_are_forgotten_before_the_context_is_full(provider: str, tmp_path: Path) -> None:
    wanted = calls(provider, ("lamp_switch", {"room": "hall"}))
    script = [text(provider, "one"), wanted, text(provider, "two"), text(provider, "three")]
    async with talking(tmp_path, provider, *script, context_tokens=1200) as desk:
        for question in ("first", "second", "third"):
            await desk.talk.ask(question + " long" * 200)
        assert desk.seen.forgotten == []
        await desk.talk.ask("fourth" + " long" * 200)
        if provider != "ollama":
            require_valid(desk.talk.history)
    sent = [one["content"][:6] for one in desk.wire.requests[-1]["messages"] if isinstance(one["content"], str)]
    assert sent[0] == "third " and sent[-1] == "fourth" and "first " not in sent
    assert desk.seen.forgotten == [(2, 0)]


async def test_a_long_question_forgets_others_and_then_what_its_own_tools_said_first(
    provider: str, tmp_path: Path
) -> None:
    programs = [
        calls(provider, ("run", {"command": f"'{letter}' * 12_000"}), first=number)
        for number, letter in enumerate("abc", 1)
    ]
    script = [text(provider, "one"), *programs, text(provider, "done")]
    async with talking(tmp_path, provider, *script, context_tokens=9000) as desk:
        await desk.talk.ask("before " + "long " * 1000)
        await desk.talk.ask("read everything")
        if provider != "ollama":
            require_valid(desk.talk.history)
    assert desk.seen.forgotten == [(1, 0), (0, 1)]
    lengths = [len(result["content"]) // 1000 for result in results(provider, desk.wire.requests[-1])]
    assert lengths == [2, 12, 12], "the newest are whole"
    assert len(results(provider, desk.wire.requests[-2])) == 2
    sent = desk.wire.requests[-1]["messages"]
    assert [one["content"] for one in sent if one["role"] == "user" and isinstance(one["content"], str)] == [
        "read everything"
    ]
