"""Every fault of models' services: typed, bounded, and never half a tool call."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from chat.chat_desk import PROVIDERS, calls, client_of, require_valid, results, talking, text
from chat.wire_server import (
    Scripted,
    Write,
    anthropic_calls,
    anthropic_error,
    anthropic_text,
    last_line,
    line,
    message_end,
    message_start,
    ollama_calls,
    ollama_text,
    text_block,
    tool_block,
)
from onetool_chat.errors import BadReply, ChatRefused
from ot.errors import ChatError, ChatTimeout, ChatUnavailable, RateLimited
from pace import PATIENCE, within

pytestmark = pytest.mark.anyio

SWITCH = ("lamp_switch", {"room": "hall"})


async def failure(desk_ask: object) -> ChatError:
    with pytest.raises(ChatError) as caught:
        await asyncio.wait_for(desk_ask, PATIENCE)  # pyright: ignore[reportArgumentType] - an awaitable
    return caught.value


# ---------------------------------------------------------------- L01, L02: limits and outages


async def test_a_rate_limit_is_waited_out_as_long_as_it_says_by_one_layer_alone(tmp_path: Path) -> None:
    """L01."""
    limited = anthropic_error(429, "rate_limit_error", retry_after="0.3")
    async with talking(tmp_path, "anthropic", limited, limited, limited, anthropic_text("there")) as desk:
        assert (await desk.talk.ask("hello")).text == "there"
        gaps = [later - earlier for earlier, later in zip(desk.wire.times, desk.wire.times[1:], strict=False)]
    # Three refusals are four requests: a second layer below would have made more.
    assert len(desk.wire.requests) == 4
    assert all(gap >= 0.3 for gap in gaps)


async def test_a_rate_limit_beyond_the_deadline_is_not_waited_for(tmp_path: Path) -> None:
    """L01."""
    limited = anthropic_error(429, "rate_limit_error", retry_after="3600")
    async with talking(tmp_path, "anthropic", limited, seconds=30) as desk:
        error = await failure(desk.talk.ask("hello"))
    assert isinstance(error, RateLimited) and error.retry_after == 3600
    assert len(desk.wire.requests) == 1


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_an_outage_is_tried_three_times_and_then_named(status: int, tmp_path: Path) -> None:
    """L02."""
    async with talking(tmp_path, "anthropic", anthropic_error(status, "overloaded_error")) as desk:
        error = await failure(desk.talk.ask("hello"))
    assert type(error) is ChatUnavailable
    assert str(error).startswith(f"service unavailable: Anthropic: {status}")
    assert len(desk.wire.requests) == 3


async def test_an_outage_of_ollama_is_tried_again_and_may_end(tmp_path: Path) -> None:
    """L02."""
    away = Scripted(['{"error": "loading"}'], 503, kind="application/json")
    async with talking(tmp_path, "ollama", away, away, ollama_text("there")) as desk:
        assert (await desk.talk.ask("hello")).text == "there"
    assert len(desk.wire.requests) == 3


async def test_an_overload_in_the_middle_of_a_reply_is_not_tried_again(tmp_path: Path) -> None:
    error = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n'
    cut = Scripted([message_start(), *text_block(0, "The")[:2], error])
    async with talking(tmp_path, "anthropic", cut) as desk:
        assert type(await failure(desk.talk.ask("hello"))) is ChatUnavailable
    assert len(desk.wire.requests) == 1


# ---------------------------------------------------------------- L03: cut streams

WHOLE = [message_start(), *text_block(0, "Let me"), *tool_block(1, "toolu_1", *SWITCH), *message_end("tool_use")]


@pytest.mark.parametrize("plain_end", [False, True], ids=["torn", "closed"])
@pytest.mark.parametrize("pieces", range(len(WHOLE)))
async def test_a_stream_that_is_cut_anywhere_calls_nothing(pieces: int, plain_end: bool, tmp_path: Path) -> None:
    """L03."""
    cut = Scripted(WHOLE[:pieces], cut=True, plain_end=plain_end)
    async with talking(tmp_path, "anthropic", cut, anthropic_text("again")) as desk:
        error = await failure(desk.talk.ask("turn it on"))
        assert isinstance(error, BadReply), error
        assert (desk.observed.tools, desk.seen.calls) == ([], [])
        require_valid(desk.talk.history)
        assert (await desk.talk.ask("and now?")).text == "again"


@pytest.mark.parametrize("plain_end", [False, True], ids=["torn", "closed"])
async def test_a_stream_of_ollama_that_is_cut_calls_nothing(plain_end: bool, tmp_path: Path) -> None:
    """L03."""
    cut = Scripted([line("", [SWITCH], done=False)], cut=True, plain_end=plain_end, kind="application/x-ndjson")
    async with talking(tmp_path, "ollama", cut, ollama_text("again")) as desk:
        assert isinstance(await failure(desk.talk.ask("turn it on")), BadReply)
        assert desk.observed.tools == []
        assert (await desk.talk.ask("and now?")).text == "again"


@pytest.mark.parametrize(
    "event",
    [
        "event: content_block_delta\ndata: {not json\n\n",
        'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", '
        '"text": "x"}}\n\n',
        'event: content_block_start\ndata: {"type": "content_block_start"}\n\n',
        'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": null}\n\n',
        'event: message_delta\ndata: ["message_delta"]\n\n',
        "event: message_delta\ndata: 17\n\n",
    ],
)
async def test_a_malformed_event_is_a_typed_error_and_calls_nothing(event: str, tmp_path: Path) -> None:
    script = Scripted([*WHOLE[:-2], event, *WHOLE[-2:]])
    async with talking(tmp_path, "anthropic", script) as desk:
        assert isinstance(await failure(desk.talk.ask("go")), BadReply)
    assert desk.observed.tools == []


@pytest.mark.parametrize(
    "bad", ["{not json\n", "17\n", '{"message": 3}\n', line("", [("lamp_switch", "hall")], done=False)]
)
async def test_a_malformed_line_of_ollama_is_a_typed_error(bad: str, tmp_path: Path) -> None:
    script = Scripted([line("", [SWITCH], done=False), bad, last_line()], kind="application/x-ndjson")
    async with talking(tmp_path, "ollama", script) as desk:
        assert isinstance(await failure(desk.talk.ask("go")), BadReply)
    assert desk.observed.tools == []


async def test_an_event_of_a_kind_that_is_not_known_yet_is_no_harm(tmp_path: Path) -> None:
    new = 'event: content_block_sparkle\ndata: {"type": "content_block_sparkle", "index": 0}\n\n'
    script = Scripted([message_start(), new, *text_block(0, "there"), *message_end()])
    async with talking(tmp_path, "anthropic", script) as desk:
        assert (await desk.talk.ask("hello")).text == "there"


# ---------------------------------------------------------------- L04: drip-feed


@pytest.mark.parametrize("provider", ["anthropic", "ollama"])
async def test_a_reply_that_drips_for_ever_is_ended_by_the_clock_of_the_question(provider: str, tmp_path: Path) -> None:
    """L04."""

    async def drip(write: Write) -> None:
        if provider == "anthropic":
            await write(message_start())
        while True:
            await write(text_block(0, "x")[0] if provider == "anthropic" else line("x", done=False))
            await asyncio.sleep(0.1)

    async with talking(tmp_path, provider, Scripted(pour=drip), client={"gap_seconds": 30}, seconds=1.5) as desk:
        error = await failure(desk.talk.ask("hello"))
        assert isinstance(error, ChatTimeout) and error.seconds == 1.5
        async with asyncio.timeout(PATIENCE):  # the connection is let go as well
            await desk.wire.closed.wait()


@pytest.mark.parametrize("provider", ["anthropic", "ollama"])
async def test_a_reply_that_pauses_too_long_has_ended(provider: str, tmp_path: Path) -> None:
    async def pause(write: Write) -> None:
        await asyncio.sleep(60)

    pieces = [message_start()] if provider == "anthropic" else [line("x", done=False)]
    async with talking(tmp_path, provider, Scripted(pieces, pour=pause), client={"gap_seconds": 0.3}) as desk:
        assert isinstance(await failure(desk.talk.ask("hello")), BadReply)


# ---------------------------------------------------------------- L06: ids


async def test_an_id_that_comes_twice_is_called_once_and_the_history_stays_valid(tmp_path: Path) -> None:
    """L06."""
    twice = anthropic_calls(("toolu_1", *SWITCH), ("toolu_1", "lamp_switch", {"room": "attic"}), ("", *SWITCH))
    again = anthropic_calls(("toolu_1", "lamp_switch", {"room": "cellar"}), ("toolu_2", "nothing_such", {}))
    async with talking(tmp_path, "anthropic", twice, again, anthropic_text("ok")) as desk:
        await desk.talk.ask("go")
        require_valid(desk.talk.history)
    assert desk.observed.tools == ["lamp.switch"]
    told = results("anthropic", desk.wire.requests[2])
    assert [result["is_error"] for result in told] == [False, True, True, True, True]
    assert "its id stands for another call" in told[1]["content"] and "its id stands" in told[3]["content"]
    assert "unknown tool" in told[4]["content"]


@pytest.mark.parametrize("written", ['{"room": "hal', '["hall"]', '"hall"', "null"])
async def test_arguments_that_are_no_whole_object_call_nothing(written: str, tmp_path: Path) -> None:
    script = anthropic_calls(("toolu_1", "lamp_switch", written))
    async with talking(tmp_path, "anthropic", script, anthropic_text("ok")) as desk:
        await desk.talk.ask("go")
        require_valid(desk.talk.history)
    (told,) = results("anthropic", desk.wire.requests[1])
    assert told["is_error"] and "not a whole JSON object" in told["content"]
    assert desk.observed.tools == []


async def test_a_call_that_the_longest_reply_cut_off_is_not_made_with_what_there_is(tmp_path: Path) -> None:
    script = anthropic_calls(("toolu_1", *SWITCH), ("toolu_2", "lamp_hang", ""), stop="max_tokens")
    async with talking(tmp_path, "anthropic", script, anthropic_text("ok")) as desk:
        await desk.talk.ask("go")
        require_valid(desk.talk.history)
    first, second = results("anthropic", desk.wire.requests[1])
    assert not first["is_error"]
    assert second["is_error"] and "chat.max_tokens" in second["content"]
    assert desk.observed.tools == ["lamp.switch"]


async def test_a_reply_of_nothing_but_white_space_is_not_sent_back(tmp_path: Path) -> None:
    empty = Scripted([message_start(), *text_block(0, "\n"), *message_end()])
    async with talking(tmp_path, "anthropic", empty, anthropic_text("ok")) as desk:
        assert (await desk.talk.ask("one")).text == ""
        await desk.talk.ask("two")
    assert [message["content"] for message in desk.wire.requests[1]["messages"]] == ["one", "two"]


# ---------------------------------------------------------------- L07: nobody there, no such model


async def test_an_ollama_that_is_down_is_named_within_two_seconds_and_not_tried_again(tmp_path: Path) -> None:
    """L07."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = client_of("ollama", f"http://127.0.0.1:{port}")
        with within(2), pytest.raises(ChatUnavailable, match="is it running") as caught:
            await client.turn([{"role": "user", "content": "hello"}], [], lambda _: None)
        assert not caught.value.again
        await client.aclose()


async def test_a_model_that_is_missing_is_named_with_the_command_that_gets_it(tmp_path: Path) -> None:
    """L07."""
    missing = Scripted(['{"error": "model \\"nope\\" not found"}'], 404, kind="application/json")
    async with talking(tmp_path, "ollama", missing, client={"model": "nope"}) as desk:
        error = await failure(desk.talk.ask("hello"))
    assert isinstance(error, ChatRefused) and error.status == 404
    assert 'model "nope" not found' in str(error) and "ollama pull nope" in str(error)
    assert len(desk.wire.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [(401, "authentication_error", "ANTHROPIC_API_KEY"), (404, "not_found_error", "model"), (400, "invalid", "")],
)
async def test_a_refusal_is_not_tried_again(status: int, kind: str, hint: str, tmp_path: Path) -> None:
    async with talking(tmp_path, "anthropic", anthropic_error(status, kind)) as desk:
        error = await failure(desk.talk.ask("hello"))
    assert isinstance(error, ChatRefused) and (error.status, hint in error.hint) == (status, True)
    assert "sk-test-key" not in str(error)
    assert len(desk.wire.requests) == 1


async def test_an_answer_that_is_no_answer_of_the_api_is_a_typed_error(tmp_path: Path) -> None:
    page = Scripted(["<html>a captive portal</html>"], kind="text/html")
    for provider in PROVIDERS:
        async with talking(tmp_path, provider, page) as desk:
            assert isinstance(await failure(desk.talk.ask("hello")), BadReply)


async def test_nothing_is_lost_or_done_twice_when_the_reply_after_a_call_fails(tmp_path: Path) -> None:
    """A tool was called, then the service went away: the next question still carries what the tool said."""
    for provider in PROVIDERS:
        refused = Scripted(['{"error": "no"}'], 400, kind="application/json")
        async with talking(tmp_path, provider, calls(provider, SWITCH), refused, text(provider, "on")) as desk:
            assert isinstance(await failure(desk.talk.ask("turn it on")), ChatRefused)
            assert (await desk.talk.ask("is it on?")).text == "on"
            assert desk.observed.tools == ["lamp.switch"]
        (told,) = results(provider, desk.wire.requests[2])
        assert json.loads(told["content"]) == {"room": "hall", "on": True}
        (tmp_path / "work").rename(tmp_path / f"work {provider}")


async def test_ollama_s_calls_keep_their_order_where_names_are_the_same(tmp_path: Path) -> None:
    """L06: it knows no ids, so the order is all that there is."""
    rooms = [("lamp_switch", {"room": room}) for room in "abc"]
    async with talking(tmp_path, "ollama", ollama_calls(*rooms), ollama_text("ok")) as desk:
        await desk.talk.ask("go")
    assert [json.loads(result["content"])["room"] for result in results("ollama", desk.wire.requests[1])] == list("abc")


HERE = Path(__file__).parent


def test_every_fault_of_models_services_has_a_test() -> None:
    corpus: list[dict[str, Any]] = yaml.safe_load((HERE.parents[3] / "tests/corpus/faults.yaml").read_text())["faults"]
    wanted = {fault["id"] for fault in corpus if fault["area"] == "llm"}
    named = {id for file in HERE.glob("test_*.py") for id in re.findall(r'"""(L\d\d)[.:]', file.read_text())}
    assert wanted
    assert named == wanted
