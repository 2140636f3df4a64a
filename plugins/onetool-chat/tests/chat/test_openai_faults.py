"""What goes wrong with OpenAI-compatible services, Ollama's among them: typed and bounded, never half a tool call."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onetool_chat
from chat.chat_desk import client_of, require_valid, results, talking
from chat.wire_server import (
    Scripted,
    Write,
    chunk,
    ollama_text,
    openai_calls,
    openai_end,
    openai_error,
    openai_text,
    serving,
)
from onetool_chat.chat_client import Usage
from onetool_chat.errors import BadReply, ChatRefused
from onetool_chat.model_providers import MODEL_PROVIDERS, ProviderName
from onetool_chat.ollama_client import OllamaClient
from onetool_chat.open_chat import choose_chat, open_client
from onetool_chat.settings import Chat
from ot.config.secrets import Secrets
from ot.errors import ChatError, ChatTimeout, ChatUnavailable, RateLimited
from ot.registry.tool_definitions import ToolDefinition
from pace import PATIENCE

pytestmark = pytest.mark.anyio

SWITCH = ("call_1", "lamp_switch", {"room": "hall"})
WHOLE = openai_calls(SWITCH).pieces[:-2]
QUESTION = [{"role": "user", "content": "hello"}]


async def failure(asking: Any) -> ChatError:
    with pytest.raises(ChatError) as caught:
        await asyncio.wait_for(asking, PATIENCE)
    return caught.value


@pytest.mark.parametrize("plain_end", [False, True], ids=["torn", "closed"])
@pytest.mark.parametrize("pieces", range(len(WHOLE)))
async def test_a_stream_that_is_cut_anywhere_calls_nothing(pieces: int, plain_end: bool) -> None:
    async with serving(Scripted(WHOLE[:pieces], cut=True, plain_end=plain_end)) as wire:
        client = client_of("openai", wire.url)
        assert isinstance(await failure(client.turn(QUESTION, [], lambda _: None)), BadReply)
        await client.aclose()


@pytest.mark.parametrize(
    "event",
    [
        "data: {not json\n\n",
        "data: 17\n\n",
        'data: ["x"]\n\n',
        'data: {"choices": 3}\n\n',
        'data: {"choices": [{"index": 0, "delta": null}]}\n\n',
        'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}}]}\n\n',
        'data: {"error": {"message": "overloaded"}}\n\n',
    ],
)
async def test_a_malformed_event_is_a_typed_error(event: str) -> None:
    async with serving(Scripted([WHOLE[0], event, *openai_end("stop")])) as wire:
        client = client_of("openai", wire.url)
        assert isinstance(await failure(client.turn(QUESTION, [], lambda _: None)), BadReply)
        await client.aclose()


async def test_limits_and_outages_are_waited_out_by_one_layer_alone(tmp_path: Path) -> None:
    script = [openai_error(429, "rate_limit", retry_after="0.01"), openai_error(503), openai_text("there")]
    async with talking(tmp_path, "openai", *script) as desk:
        assert (await desk.talk.ask("hello")).text == "there"
    assert len(desk.wire.requests) == 3


@pytest.mark.parametrize(
    ("status", "code", "kind", "words"),
    [
        (401, "invalid_api_key", ChatRefused, "is OPENAI_API_KEY right?"),
        (404, "model_not_found", ChatRefused, "is the model's name right?"),
        (429, "insufficient_quota", ChatRefused, "insufficient_quota"),
        (429, "rate_limit", RateLimited, "429"),
        (500, "oops", ChatUnavailable, "500"),
    ],
)
async def test_each_refusal_has_its_own_kind(status: int, code: str, kind: type[ChatError], words: str) -> None:
    async with serving(openai_error(status, code)) as wire:
        client = client_of("openai", wire.url)
        error = await failure(client.turn(QUESTION, [], lambda _: None))
        await client.aclose()
    assert type(error) is kind and words in f"{error} 429"
    assert "sk-test-key" not in str(error)


async def test_calls_that_are_not_whole_or_come_twice_are_not_made(tmp_path: Path) -> None:
    twice = openai_calls(SWITCH, ("call_1", "lamp_switch", {"room": "attic"}), ("", "lamp_switch", '{"room": "hal'))
    cut = openai_calls(("call_9", "lamp_switch", {"room": "cellar"}), stop="length")
    async with talking(tmp_path, "openai", twice, cut, openai_text("ok")) as desk:
        await desk.talk.ask("go")
        require_valid(desk.talk.history)
    assert desk.observed.tools == ["lamp.switch"]
    told = [result["content"] for result in results("openai", desk.wire.requests[2])]
    assert "its id stands for another call" in told[1]
    assert "its id stands" in told[2] and "chat.max_tokens" in told[3]


async def test_a_server_that_numbers_nothing_and_sends_calls_whole_is_understood() -> None:
    function = {"name": "lamp_switch", "arguments": '{"room": "hall"}'}
    both = {"tool_calls": [{"id": "a", "function": function}, {"id": "b", "function": function}]}
    async with serving(Scripted([chunk(both), *openai_end("stop")])) as wire:
        client = client_of("openai", wire.url)
        turn = await client.turn(QUESTION, [], lambda _: None)
        await client.aclose()
    assert [(call.id, call.arguments) for call in turn.calls] == [("a", {"room": "hall"}), ("b", {"room": "hall"})]


async def test_a_reply_that_drips_for_ever_is_ended_and_its_connection_let_go(tmp_path: Path) -> None:
    async def drip(write: Write) -> None:
        while True:
            await write(chunk({"content": "x"}))
            await asyncio.sleep(0.05)

    async with talking(tmp_path, "openai", Scripted(pour=drip), seconds=0.7) as desk:
        assert isinstance(await failure(desk.talk.ask("hello")), ChatTimeout)
        async with asyncio.timeout(PATIENCE):
            await desk.wire.closed.wait()


async def test_a_local_server_that_is_down_is_named_and_not_tried_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = client_of("openai", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        error = await failure(client.turn(QUESTION, [], lambda _: None))
        await client.aclose()
    assert isinstance(error, ChatUnavailable) and "is it running?" in str(error) and not error.again


@pytest.mark.parametrize("name", [name for name, provider in MODEL_PROVIDERS.items() if provider.api == "openai"])
async def test_every_compatible_provider_is_asked_with_the_key_of_its_name(name: ProviderName) -> None:
    provider = MODEL_PROVIDERS[name]
    async with serving(openai_text("hello")) as wire:
        chat = Chat(provider=name, openai_url=f"{wire.url}/v1", model="m")
        client = open_client(chat, Secrets(user={provider.key: f"key-of-{name}"}))
        turn = await client.turn(QUESTION, [], lambda _: None)
        await client.aclose()
    assert (turn.text, turn.usage.input, turn.usage.output) == ("hello", 10, 5)
    assert f"Bearer key-of-{name}" in wire.headers[0] and wire.headers[0].startswith("POST /v1/chat/completions ")
    if provider.needs_key:
        with pytest.raises(ChatError, match=f"put {provider.key} into the environment"):
            open_client(chat, Secrets())
    if not provider.model:
        with pytest.raises(ChatError, match="name one with --model"):
            open_client(chat.model_copy(update={"model": ""}), Secrets(user={provider.key: "x"}))


def test_providers_are_named_in_one_place() -> None:
    sources = Path(onetool_chat.__file__).parents[1].rglob("*.py")
    assert [file.name for file in sources if '"lmstudio"' in file.read_text()] == ["model_providers.py"]


def test_the_key_of_one_provider_is_not_for_the_address_of_another() -> None:
    chat = Chat(provider="vllm", openai_url="http://10.0.0.7:8000/v1", model="mine")
    assert choose_chat(chat, None, "") == chat
    assert choose_chat(chat, "vllm", "other").openai_url == chat.openai_url
    other = choose_chat(chat, "openai", "")
    assert (other.provider, other.model, other.openai_url) == ("openai", "", "")


async def test_a_conversation_is_measured_where_the_service_counts_no_tokens(tmp_path: Path) -> None:
    told = openai_text("word " * 40)
    uncounted = replace(told, pieces=[piece for piece in told.pieces if '"usage"' not in piece])
    async with talking(tmp_path, "openai", uncounted, context_tokens=100) as desk:
        for question in ("one", "two", "six"):
            await desk.talk.ask(question)
        assert desk.talk.usage == Usage()
    assert desk.seen.forgotten == [(2, 0)]
    assert desk.wire.requests[-1]["messages"][0]["content"] == "six"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
async def test_a_redirect_takes_neither_the_question_nor_the_key_anywhere(provider: str) -> None:
    async with serving(openai_text("stolen")) as elsewhere:
        async with serving(openai_error(307, location=f"{elsewhere.url}/steal")) as wire:
            client = client_of(provider, wire.url)
            await failure(client.turn(QUESTION, [], lambda _: None))
            await client.aclose()
            assert len(wire.requests) == 1
        assert elsewhere.requests == []


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"$ref": "#/$defs/Size"},
        "where": {"anyOf": [{"type": "string"}, {"type": "null"}], "minLength": 2},
        "unit": {"const": "cm"},
        "box": {"type": "object", "properties": {"width": {"type": "integer", "minimum": 1}}, "required": ["width"]},
    },
    "$defs": {"Size": {"type": "string", "enum": ["small", "large"]}},
    "required": ["size"],
}


async def asked(*tools: ToolDefinition, **chat: Any) -> dict[str, Any]:
    """Return the request that one question makes."""
    async with serving(ollama_text("ok")) as wire:
        client = OllamaClient(Chat(ollama_url=wire.url, **chat))
        await client.turn(QUESTION, tools, lambda _: None)
        await client.aclose()
        return wire.requests[0]


async def test_the_whole_schema_of_a_tool_reaches_it() -> None:
    request = await asked(ToolDefinition("box", "Make a box.", SCHEMA))
    told = request["tools"][0]["function"]["parameters"]
    assert told["properties"] == {
        "size": {"type": "string", "enum": ["small", "large"]},
        "where": {"type": "string", "minLength": 2},
        "unit": {"enum": ["cm"]},
        "box": SCHEMA["properties"]["box"],
    }
    assert told["required"] == ["size"]


async def test_it_is_asked_for_a_context_that_holds_the_tools_or_for_what_the_settings_say() -> None:
    assert (await asked())["options"]["num_ctx"] == 32_768
    assert (await asked(context_tokens=9000))["options"]["num_ctx"] == 9000


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("10.0.0.7", "http://10.0.0.7:11434"),
        ("box:8000", "http://box:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("https://box/x", "https://box/x"),
    ],
)
async def test_a_host_alone_is_an_address(host: str, url: str) -> None:
    client = OllamaClient(Chat(), usual_url=host)
    assert client._url == url  # pyright: ignore[reportPrivateUsage] - nothing listens there
    await client.aclose()
