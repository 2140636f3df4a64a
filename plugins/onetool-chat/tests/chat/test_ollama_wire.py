"""What an Ollama receives."""

from __future__ import annotations

from typing import Any

import pytest

from chat.wire_server import ollama_text, serving
from onetool_chat.ollama_client import OllamaClient
from onetool_chat.settings import Chat
from ot.registry.tool_definitions import ToolDefinition

pytestmark = pytest.mark.anyio

QUESTION = [{"role": "user", "content": "hello"}]
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
