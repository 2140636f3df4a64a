"""The tool run, in both eras of the protocol, and the names that clients give themselves."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from mcp_types import Implementation

from faults.watched import CONFIG, Place
from faults.wire_eras import ERAS, start_talk
from ot.server.mcp_server import INSTRUCTIONS, OneUser, build_server
from ot.server.run_description import COMMAND, SESSION, run_description
from ot.stats.query import read_figures
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio

Session = Client[Any]


async def run(client: Session, command: str) -> Any:
    return await client.call_tool("run", {"command": command}, raise_on_error=False)


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


async def test_there_is_one_tool_and_it_takes_one_command(client: Session) -> None:
    (tool,) = await client.list_tools()
    assert "run" == tool.name
    command, session = {"type": "string", "description": COMMAND}, {"type": "string", "description": SESSION}
    assert {"command": command, "session": {**session, "default": ""}} == tool.input_schema["properties"]
    assert tool.input_schema["required"] == ["command"]


async def test_runs_that_name_the_same_session_share_their_variables(client: Session) -> None:
    async def kept(command: str) -> Any:
        return await client.call_tool("run", {"command": command, "session": "s"}, raise_on_error=False)

    await kept("x = 41")
    assert texts(await kept("x + 1")) == ["42"]
    assert (await run(client, "x")).is_error


async def test_the_tool_says_honestly_what_it_may_do(client: Session) -> None:
    (tool,) = await client.list_tools()
    assert tool.annotations is not None
    assert (False, True, True) == (
        tool.annotations.read_only_hint,
        tool.annotations.destructive_hint,
        tool.annotations.open_world_hint,
    )


async def test_description_and_instructions_are_what_the_module_says_byte_for_byte(
    client: Session, app: Workspace
) -> None:
    (tool,) = await client.list_tools()
    expected = run_description(app.picture.registry.packs, "portable")
    assert (expected, INSTRUCTIONS) == (tool.description, client.instructions)


async def test_description_and_instructions_do_not_depend_on_the_house(app: Workspace, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("x")
    first, second = build_server(OneUser(app), "1"), build_server(OneUser(app), "1")
    assert (await first.list_tools())[0].description == (await second.list_tools())[0].description
    assert first.instructions == second.instructions


async def test_a_value_is_one_text_and_no_error(client: Session) -> None:
    result = await run(client, "{'a': [1, 2]}")
    assert (False, ['{"a":[1,2]}']) == (result.is_error, texts(result))


async def test_what_was_printed_is_a_text_of_its_own_before_the_value(client: Session) -> None:
    assert ["hello\n", "2"] == texts(await run(client, "print('hello')\n1 + 1"))


async def test_a_failure_is_marked_as_one_and_names_type_line_and_source(client: Session) -> None:
    result = await run(client, "x = 1\ny = x / 0")
    assert result.is_error
    assert "ZeroDivisionError" in texts(result)[-1]
    assert "line 2: y = x / 0" in texts(result)[-1]


async def test_what_was_printed_before_a_failure_is_not_lost(client: Session) -> None:
    result = await run(client, "print('so far')\n1 / 0")
    assert result.is_error
    assert "so far\n" == texts(result)[0]


@pytest.mark.parametrize("command", ["1 +", "nothing.at_all()", "ot.nothing()", "$nothing", "x" * ((1 << 20) + 1)])
async def test_every_refusal_is_marked_as_a_failure(client: Session, command: str) -> None:
    assert (await run(client, command)).is_error


async def test_a_program_may_return_a_failure_s_text_without_failing(client: Session) -> None:
    assert not (await run(client, "'Error: this is only text'")).is_error


@pytest.mark.parametrize("command", ["{'a': 1}", "'text'", "1/0", "None", "x = 1"])
async def test_no_reply_carries_its_text_twice(client: Session, command: str) -> None:
    result = await client.call_tool_mcp("run", {"command": command})
    assert result.structured_content is None


@pytest.mark.parametrize("command", ["1", "1/0"])
async def test_every_reply_names_the_engine(client: Session, command: str) -> None:
    meta = (await run(client, command)).meta["onetool"]
    assert "portable" == meta["engine"]
    assert meta["ms"] >= 0


async def test_a_failure_s_kind_is_told_to_machines_too(client: Session) -> None:
    assert "InvalidSyntax" == (await run(client, "1 +")).meta["onetool"]["error"]


async def test_an_unknown_tool_is_refused(client: Session) -> None:
    with pytest.raises(Exception, match=r"[Uu]nknown tool"):
        await client.call_tool("walk", {"command": "1"})


@pytest.mark.parametrize("arguments", [{}, {"command": 1}, {"command": None}, {"command": "1", "extra": 1}])
async def test_arguments_of_another_shape_are_refused_and_nothing_runs(
    client: Session, arguments: dict[str, Any]
) -> None:
    result = await client.call_tool_mcp("run", arguments)
    assert result.is_error
    assert "onetool" not in (result.meta or {})


async def test_a_large_result_is_a_handle_whose_pages_can_be_read(client: Session) -> None:
    stored = json.loads(texts(await run(client, "[i for i in range(100_000)]"))[0])
    assert 100_000 == stored["total_lines"]
    page = texts(await run(client, f"ot.result(handle={stored['handle']!r}, offset=100_000, limit=1)['lines']"))
    assert "99999]" in page[0]


@pytest.mark.parametrize(("name", "beside"), [("gemini-cli-mcp-client", {}), ("claude-code", None)])
async def test_a_client_that_reads_text_as_structured_content_is_sent_an_empty_object_beside_it(
    server: FastMCP, name: str, beside: dict[str, Any] | None
) -> None:
    info = Implementation(name=name, version="1")
    async with Client(server, mode="legacy", client_info=info) as client:
        reply = await run(client, "[1, 2]")
    assert texts(reply) == ["[1,2]"]
    assert reply.structured_content == beside


TOOLS, WORDS = 60, "Take some of the books on this shelf, the oldest first."


@pytest.mark.parametrize("era", ERAS)
def test_runs_are_counted_under_the_clients_name_and_its_definitions_once(tmp_path: Path, era: str) -> None:
    place = Place.make(tmp_path, CONFIG)
    add_pack(place)
    talk = start_talk(place, era)
    with talk.wire:
        for _ in range(3):
            assert not talk.run("1 + 1").result.get("isError")
        listed = talk.request("tools/list")
        said = talk.instructions()
    figures = read_figures(place.home / ".onetool" / "stats" / "stats.db", "all", time.time())
    assert [(one["client"], one["runs"]) for one in figures.clients] == [("wire", 3)]
    assert figures.runs["connections"] == 1
    # What is weighed is what a client really gets, give or take the protocol's own wrapping.
    sent = len(said) + len(json.dumps(listed.result["tools"]))
    assert figures.runs["our_chars"] == pytest.approx(sent, rel=0.1)
    assert figures.runs["flat_chars"] > 2 * figures.runs["our_chars"]


def add_pack(place: Place) -> None:
    """Give the user a pack of their own: nobody would list bundled packs without OneTool, so they do not count."""
    file = place.config.parent / "tools" / "shelf" / "shelf_tools.py"
    file.parent.mkdir(parents=True)
    names = [f"take_{number}" for number in range(TOOLS)]
    tools = [f'def {name}(*, count: int = 1) -> int:\n    """{WORDS}"""\n    return count\n' for name in names]
    file.write_text(f"pack = 'shelf'\n__all__ = {names}\n\n\n" + "\n\n".join(tools))
