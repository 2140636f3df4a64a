"""Typed packs of other people beside the guide: they do not disturb each other, and their models are plain data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from fastmcp import Client as FastClient

from chat.chat_desk import client_of
from chat.wire_server import anthropic_calls, anthropic_text, serving
from onetool_chat.chat_tools import ChatTools
from onetool_chat.conversation import Conversation
from ot.registry.tool_definitions import ToolDefinitions
from ot.runtime.reply import BareReply
from ot.server.mcp_server import OneUser, build_server
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

PACKS = ("guide", "wiki", "shelf")
SOURCE = '''
    """A pack whose tools are called as those of others."""
    from datetime import date
    from enum import Enum
    from types import SimpleNamespace
    from pydantic import BaseModel
    from mcp_core import Result, ToolArguments, program_function

    class Order(Enum):
        NEWEST = "newest"
        BEST = "best"

    class SearchArguments(ToolArguments):
        query: str
        order: Order = Order.BEST

    class Page(BaseModel):
        title: str
        on: date

    @ToolArguments.declare
    def search(args: SearchArguments) -> Result[list[Page]]:
        """Search {pack}."""
        said = {"message": "1 found", "instruction": "Show it."} if args.query == "said" else {}
        return Result.ok([Page(title="{pack} " + args.query, on=date(2026, 3, 1))], **said)

    TOOLS = SimpleNamespace(search=program_function(search))
    '''


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The packs wiki and shelf, each of a distribution of its own; none of the three is imported."""
    for pack in PACKS[1:]:
        (tmp_path / f"tool_{pack}.py").write_text(dedent(SOURCE).replace("{pack}", pack))
        info = tmp_path / f"{pack}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {pack}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[onetool.packs]\n{pack} = tool_{pack}:TOOLS\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for pack in PACKS[1:]:
        sys.modules.pop(f"tool_{pack}", None)


@pytest.mark.parametrize("order", [*permutations(PACKS)], ids="-".join)
async def test_packs_with_tools_of_one_name_work_in_every_order(order: tuple[str, ...], tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        found = {pack: value_of(await app.run(f'{pack}.search(query="x")')) for pack in order}
    assert found["guide"] == "[]"
    assert [json.loads(found[pack])[0]["title"] for pack in PACKS[1:]] == ["wiki x", "shelf x"]


PAGE = [{"title": "wiki x", "on": "2026-03-01"}]


async def test_a_model_is_plain_data_for_programs_classic_clients_and_chat(tmp_path: Path) -> None:
    given: dict[str, Any] = {"query": "x", "order": "newest"}
    async with running_app(tmp_path) as app:
        program = value_of(await app.run("wiki.search(**" + repr(given) + ")"))
        async with FastClient(build_server(OneUser(app), "1", classic=await app.definitions_of(["wiki"]))) as client:
            (classic,) = [getattr(part, "text", "") for part in (await client.call_tool("wiki_search", given)).content]
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["wiki"]))
        async with serving(anthropic_calls(("toolu_1", "wiki_search", given)), anthropic_text("ok")) as wire:
            model = client_of("anthropic", wire.url)
            await Conversation(model, tools).ask("what is new?")
            await model.aclose()
    chat = wire.requests[1]["messages"][-1]["content"][0]["content"]
    assert json.loads(program) == json.loads(classic) == json.loads(chat) == PAGE


@pytest.mark.scenario("003-01", "003-04")
async def test_message_and_instruction_of_a_success_stand_beside_the_value_on_every_route(tmp_path: Path) -> None:
    note = "note: wiki.search: 1 found\nwiki.search: Show it."
    async with running_app(tmp_path) as app:
        program = await app.run('[wiki.search(query="said")[0]["title"] for _ in range(3)]')
        classic = await app.call("wiki", "search", {"query": "said"})
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["wiki"]))
        chat = await tools.execute("wiki_search", {"query": "said"})
        elsewhere = await app.call("wiki", "search", {"query": "said"}, bare=True)
    assert program.texts == ('["wiki said","wiki said","wiki said"]', note)
    assert classic.texts[1:] == (note,)
    assert chat.text.endswith(note)
    assert isinstance(elsewhere, BareReply) and elsewhere.printed == note.removeprefix("note: ")


async def test_help_and_errors_name_the_keys_and_choices_of_a_model(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        page = value_of(await app.run('ot.help(query="wiki.search")'))
        guide = value_of(await app.run('ot.help(query="guide.get")'))
        error = error_of(await app.run('wiki.search(query="x")[0].titel'))
    assert "order: Literal['newest', 'best'] = 'best'" in page
    assert "-> list[{title: str, on: str}]" in page
    assert "-> {category: str, name: str, title: str" in guide
    assert "wiki.search() returned list[{title: str, on: str}]" in error
