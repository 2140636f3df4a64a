"""One declared tool, called by a program, by a classic MCP client and by a chat model: the same in all three ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from chat.chat_desk import client_of
from chat.wire_server import anthropic_calls, anthropic_text, serving
from guide_process import answer_of
from mcp_guide.server import server_with
from mcp_guide.tools.tool_document import get
from ot.app import App
from ot.chat.chat_tools import ChatTools
from ot.chat.conversation import Conversation
from ot.registry.tool_definitions import ToolDefinitions
from run_app import Calls, running_app

pytestmark = pytest.mark.anyio

GOOD = {"category": "style", "name": "python"}
BAD = {"category": "../x", "name": "python"}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with one document."""
    document = tmp_path / "project" / ".guide" / "style" / "python.md"
    document.parent.mkdir(parents=True)
    document.write_text("# Python style\nBe brief.\n")
    monkeypatch.chdir(tmp_path / "project")
    yield document


async def by_program(app: App, given: dict[str, Any]) -> str:
    return "\n".join((await app.run(f"guide.get(**{given!r})")).texts)


async def by_classic_client(given: dict[str, Any]) -> dict[str, Any]:
    async with Client(server_with({"get": get})._mcp_server) as client:
        return (await answer_of(client, "get", given))[1]


async def by_chat(app: App, given: dict[str, Any]) -> str:
    tools = ChatTools(app, ToolDefinitions.chosen(app.picture.registry, ["guide"]))
    async with serving(anthropic_calls(("toolu_1", "guide_get", given)), anthropic_text("ok")) as wire:
        client = client_of("anthropic", wire.url)
        await Conversation(client, tools).ask("how do I write Python here?")
        await client.aclose()
    return wire.requests[1]["messages"][-1]["content"][0]["content"]


async def test_the_value_is_the_same_in_all_three_ways_and_the_door_tells_of_two(shelf: Path, tmp_path: Path) -> None:
    calls = Calls()
    async with running_app(tmp_path, observers=[calls]) as app:
        program, chat = await by_program(app, GOOD), await by_chat(app, GOOD)
    classic = await by_classic_client(GOOD)
    assert json.loads(program) == json.loads(chat) == classic["value"]
    assert classic["value"]["title"] == "Python style"
    # The classic server is a process without a door; program and chat leave the same record at theirs.
    one, two = calls.records
    assert (one.tool, one.caller, one.error) == (two.tool, two.caller, two.error) == ("guide.get", one.caller, "")
    assert one.run_id != two.run_id


async def test_the_same_check_refuses_with_the_same_words_in_all_three_ways(shelf: Path, tmp_path: Path) -> None:
    calls = Calls()
    async with running_app(tmp_path, observers=[calls]) as app:
        program, chat = await by_program(app, BAD), await by_chat(app, BAD)
    classic = await by_classic_client(BAD)
    for words in (program, chat, classic["error"]):
        assert "category: String should match pattern" in words
    one, two = calls.records
    assert one.error == two.error != ""
