"""One declared tool, called by a program, by a classic MCP client and by a chat model: the same in all three ways."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client as FastClient
from mcp import Client
from mcp_types import TextContent

from chat.chat_desk import client_of
from chat.wire_server import anthropic_calls, anthropic_text, serving
from guide_process import answer_of
from mcp_guide.server import server_with
from mcp_guide.tools.tool_document import get
from onetool_chat.chat_tools import ChatTools
from onetool_chat.conversation import Conversation
from ot.registry.tool_definitions import ToolDefinitions
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
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


async def by_program(app: Workspace, given: dict[str, Any]) -> str:
    return "\n".join((await app.run(f"guide.get(**{given!r})")).texts)


async def by_classic_client(app: Workspace, given: dict[str, Any]) -> str:
    server = build_server(OneUser(app), "1", classic=await app.definitions_of(["guide"]))
    async with FastClient(server) as client:
        result = await client.call_tool("guide_get", given, raise_on_error=False)
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def by_the_guide_s_own_server(given: dict[str, Any]) -> dict[str, Any]:
    async with Client(server_with({"get": get})._mcp_server) as client:
        return (await answer_of(client, "get", given))[1]


async def by_chat(app: Workspace, given: dict[str, Any]) -> str:
    tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["guide"]))
    async with serving(anthropic_calls(("toolu_1", "guide_get", given)), anthropic_text("ok")) as wire:
        client = client_of("anthropic", wire.url)
        await Conversation(client, tools).ask("how do I write Python here?")
        await client.aclose()
    return wire.requests[1]["messages"][-1]["content"][0]["content"]


async def test_the_value_the_log_line_and_the_row_are_the_same_in_all_three_ways(
    shelf: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = Calls()
    with caplog.at_level(logging.DEBUG, "ot"):
        async with running_app(tmp_path, observers=[calls]) as app:
            program = await by_program(app, GOOD)
            classic, chat = await by_classic_client(app, GOOD), await by_chat(app, GOOD)
            stats = await app.run("__format__ = 'json'\not.stats(tool='guide.get')")
    alone = await by_the_guide_s_own_server(GOOD)
    assert json.loads(program) == json.loads(chat) == json.loads(classic) == alone["value"]
    assert alone["value"]["title"] == "Python style"
    assert {(call.tool, call.error) for call in calls.records[:3]} == {("guide.get", "")}
    assert len({call.run_id for call in calls.records[:3]}) == 3
    assert json.loads(stats.texts[0])["total_calls"] == 3
    lines = [record.getMessage() for record in caplog.records if "tool.call" in record.getMessage()]
    told = [re.sub(r"\d+\.\d+s|client=\S+|run=\S+", "", line) for line in lines if "guide.get" in line]
    assert len(told) == 3
    assert len(set(told)) == 1


async def test_the_same_check_refuses_with_the_same_words_in_all_three_ways(shelf: Path, tmp_path: Path) -> None:
    calls = Calls()
    async with running_app(tmp_path, observers=[calls]) as app:
        program = await by_program(app, BAD)
        classic, chat = await by_classic_client(app, BAD), await by_chat(app, BAD)
    alone = await by_the_guide_s_own_server(BAD)
    for words in (program, chat, classic, alone["error"]):
        assert "category: String should match pattern" in words
    one, two, three = calls.records
    assert one.error == two.error == three.error != ""
