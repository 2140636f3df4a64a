"""What clients are told of run: its description, as long as the packs are, and the three resources."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from mcp import MCPError

from ot.errors import ToolUnavailable
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import OneUser, build_server
from ot.server.run_description import (
    DESCRIPTION,
    MAX_NAMES,
    SANDBOX,
    VERY_MANY,
    pack_names,
    run_description,
    tool_lines,
)
from ot.workspace import Workspace
from run_app import BUNDLED, running_app, value_of

pytestmark = pytest.mark.anyio

ENGINES: dict[str, Callable[[], Engine]] = {"portable": PortableEngine, "exact": lambda: ExactEngine(ready=1)}
CODE = re.compile(r"(?:^  .*\n)+", re.MULTILINE)
EXAMPLES = [textwrap.dedent(block) for block in CODE.findall(DESCRIPTION)]

TOKENS_WITH_NAMES_ALONE = {"exact": 209, "portable": 248, "trusted": 198}
"""What the description took when it named the packs and none of their tools."""


def packs(source: str, count: int) -> dict[str, Pack]:
    names = [f"{source}{n:02}" for n in range(count)]
    return {name: Pack(name, source, list) for name in names}


def bundled(app: Workspace) -> dict[str, Pack]:
    return {name: app.picture.registry.packs[name] for name in BUNDLED}


@pytest.mark.parametrize("engine", SANDBOX)
def test_beside_the_names_it_is_at_most_350_tokens(engine: str) -> None:
    assert len(run_description({}, engine)) / 4 <= 350


def test_it_names_every_pack_in_order() -> None:
    assert pack_names(packs("b", 2) | packs("a", 1)) == "a00, b00, b01"
    assert "\nOther packs: a00, b00\n" in run_description(packs("b", 1) | packs("a", 1), "exact")


async def test_it_names_the_tools_of_bundled_packs_with_what_they_require(app: Workspace) -> None:
    found = bundled(app)
    lines = tool_lines(found).splitlines()
    for name in ("file", "git", "data", "web"):
        (line,) = (line for line in lines if line.startswith(f"{name}: "))
        for tool, word in zip(found[name].tools.values(), line.split(" ")[1:], strict=True):
            required = ",".join(each.name for each in tool.parameters if each.required)
            assert word == (f"{tool.name}({required})" if required else tool.name)
    assert any(line.startswith("guide: documents get") for line in lines)


@pytest.mark.parametrize("engine", SANDBOX)
async def test_with_all_bundled_packs_it_is_at_most_350_tokens_longer_than_with_their_names_alone(
    app: Workspace, engine: str
) -> None:
    assert len(run_description(bundled(app), engine)) / 4 <= TOKENS_WITH_NAMES_ALONE[engine] + 350


def pack_of(name: str, source: str, *tools: Tool) -> Pack:
    return Pack(name, source, lambda: list(tools))


def test_tools_of_the_users_packs_and_servers_follow_as_far_as_the_room_goes() -> None:
    def look_ups(name: str, source: str, count: int) -> Pack:
        parameters = (Parameter("item"), Parameter("limit", default="10"))
        return pack_of(name, source, *(Tool(name, f"look_up_{n}", parameters) for n in range(count)))

    names = " ".join(f"look_up_{n}" for n in range(VERY_MANY))
    found = [look_ups("own", "local", 2), look_ups("all", "proxy", VERY_MANY + 1), look_ups("few", "proxy", 1)]
    offered = {one.name: one for one in [*found, *(look_ups(f"long{n}", "proxy", VERY_MANY) for n in range(4))]}
    few, *long, own, others = tool_lines(offered).splitlines()
    assert few == "few: look_up_0(item)"
    assert own == "own: look_up_0(item) look_up_1(item)"
    assert [re.sub(r"\(.*?\)", "", line) for line in long] == [f"long{n}: {names}" for n in range(3)]
    assert others == "Other packs: all, long3"


def test_it_names_the_fields_of_what_a_servers_tools_take_and_list_once() -> None:
    row, line = "{id: int, lines: list[{sku: str, count: int}], note?: str | None}", "list[{sku: str, count: int}]"
    shop = pack_of(
        "shop",
        "proxy",
        Tool("shop", "orders", (Parameter("page", default="1"),), returns=f"{{items: list[{row}], total: int}}"),
        Tool("shop", "order", (Parameter("lines", annotation=line), Parameter("note", default="''")), returns=row),
        Tool("shop", "resources", (), returns=f"list[{row}]"),
        Tool("shop", "kinds", (), returns="list[{'obey me': int}]"),
    )
    shown = "shop: orders(page=)->{items:[{id,lines,note}],total} order(lines:[{sku,count}],note=) kinds"
    assert tool_lines({"shop": shop}) == shown


async def test_servers_come_before_what_bundled_tools_require_and_before_packs_that_are_used_seldom(
    app: Workspace,
) -> None:
    tools = [Tool("far", f"find_{n}", (Parameter("item_of_the_list"),)) for n in range(VERY_MANY)]
    *lines, others = tool_lines(bundled(app) | {"far": pack_of("far", "proxy", *tools)}).splitlines()
    assert "far: find_0(item_of_the_list) find_1(item_of_the_list)" in "\n".join(lines)
    assert any(line.startswith("git: blame branches commit diff log") for line in lines)
    assert others.startswith("Other packs: ")
    assert "llm" in others


def test_a_pack_that_cannot_be_read_is_named_and_one_that_must_be_imported_is_not_read() -> None:
    def fail() -> list[Tool]:
        raise ToolUnavailable("broken", "it is malformed")

    offered = {"broken": Pack("broken", "local", fail), "slow": Pack("slow", "local", pytest.fail, imported=True)}
    assert tool_lines(offered) == "Other packs: broken, slow"


def test_of_very_many_packs_it_names_the_first_of_each_source_and_counts_the_others() -> None:
    assert "more" not in pack_names(packs("proxy", MAX_NAMES))
    named = pack_names(packs("proxy", MAX_NAMES) | packs("local", 2))
    assert named.startswith("local00, local01; proxy00, proxy01,")
    assert named.endswith('proxy07 and 32 more. All: ot.packs(info="list")')


async def test_each_parameter_of_run_is_described(client: Client[Any]) -> None:
    (tool,) = await client.list_tools()
    assert all(schema["description"] for schema in tool.input_schema["properties"].values())


async def test_it_stays_the_same_while_the_packs_do(app: Workspace) -> None:
    server = build_server(OneUser(app), "1")
    async with Client(server) as client:
        before = await client.list_tools()
        await client.call_tool("run", {"command": "1"})
        await client.call_tool("run", {"command": "ot.reload()"})
        assert await client.list_tools() == before


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_new_pack_is_named_and_the_client_is_told(app: Workspace, mode: Any) -> None:
    told: list[str] = []

    async def hear(message: Any) -> None:
        told.append(type(getattr(message, "root", message)).__name__)

    async with Client(build_server(OneUser(app), "1"), mode=mode, message_handler=hear) as client:
        (tool,) = await client.list_tools()
        assert "forecast" not in str(tool.description)
        pack = app.paths.global_dir / "tools" / "forecast"
        pack.mkdir(parents=True)
        (pack / "forecast_tools.py").write_text("def f() -> int:\n    '''One.'''\n    return 1\n", encoding="utf-8")
        await client.call_tool("run", {"command": "ot.reload()"})
        (tool,) = await client.list_tools()
        assert "forecast" in str(tool.description)
        assert "ToolListChangedNotification" in told


@pytest.mark.parametrize("engine", ENGINES)
async def test_its_examples_run_one_after_the_other(engine: str, tmp_path: Path) -> None:
    if engine == "exact" and ExactEngine.missing_here():
        pytest.skip(ExactEngine.missing_here())
    async with running_app(tmp_path, engine=ENGINES[engine]()) as app:
        (app.paths.cwd / "notes.txt").write_text("TODO: rest\nother\n", encoding="utf-8")
        find, whole = EXAMPLES
        for query in find.splitlines():
            assert value_of(await app.run(query))
        assert value_of(await app.run(whole)) == "[1]"


Session = Client[Any]


async def read(client: Session, uri: str) -> str:
    (content,) = await client.read_resource(uri)
    return content.text  # pyright: ignore[reportAttributeAccessIssue] - all three are text


async def stored_handle(client: Session, program: str) -> str:
    result = await client.call_tool("run", {"command": program})
    return json.loads(result.content[0].text)["handle"]  # pyright: ignore[reportAttributeAccessIssue] - text


async def test_there_are_one_resource_and_two_templates(client: Session) -> None:
    resources, templates = await client.list_resources(), await client.list_resource_templates()
    assert ["ot://tools"] == [str(resource.uri) for resource in resources]
    assert {"ot://tool/{name}", "ot://result/{handle}"} == {template.uri_template for template in templates}


async def test_the_tools_resource_names_every_tool(client: Session) -> None:
    names = json.loads(await read(client, "ot://tools"))
    assert {"brave.search", "file.read", "ot.help"} <= set(names)
    assert sorted(names) == names


async def test_the_tool_resource_is_that_tool_s_help(client: Session) -> None:
    page = await read(client, "ot://tool/brave.search")
    assert "brave.search(query: str, count: int = 1)" in page


async def test_the_result_resource_is_the_stored_text(client: Session) -> None:
    handle = await stored_handle(client, "'x' * 60_000")
    assert "x" * 60_000 == await read(client, f"ot://result/{handle}")


async def test_a_result_too_large_for_one_message_says_how_to_page_it(client: Session) -> None:
    handle = await stored_handle(client, "'x' * 5_000_000")
    with pytest.raises(MCPError, match=r"ot\.result\(\)"):
        await read(client, f"ot://result/{handle}")


@pytest.mark.parametrize(
    "uri", ["ot://tool/nothing", "ot://tool/ot.nothing", "ot://tool/a.b.c", "ot://result/nothing", "ot://result/%00"]
)
async def test_what_does_not_exist_is_an_error_of_one_line_without_our_insides(client: Session, uri: str) -> None:
    with pytest.raises(MCPError) as failure:
        await read(client, uri)
    assert "Traceback" not in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("handle", ["../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "~root", "*"])
async def test_no_handle_leaves_the_store(client: Session, handle: str) -> None:
    with pytest.raises(MCPError) as failure:
        await read(client, f"ot://result/{handle}")
    assert "root:" not in str(failure.value)
