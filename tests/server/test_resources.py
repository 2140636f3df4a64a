"""The three resources, in both eras of the protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastmcp import Client
from mcp import MCPError

pytestmark = pytest.mark.anyio

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
