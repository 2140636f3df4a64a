"""Definitions that a real MCP library makes of real Python functions read nearly as those functions do."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import pytest
from fastmcp import Client, FastMCP
from pydantic import BaseModel, Field

from ot.errors import InvalidArguments
from ot.execution.schema_check import SchemaCheck
from ot.registry.proxy_target import ServerIdentity
from ot.registry.tool import signature_text
from ot.registry.tool_registry import Pack
from ot.servers.definitions import ServerDefinitions
from ot.servers.proxied_pack import make_proxied_pack

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Node(BaseModel):
    name: str
    children: list[Node] = Field(default_factory=list["Node"])
    note: str | None = None


def paint(
    shape: Annotated[str, Field(description="What to paint")],
    colour: Colour = Colour.RED,
    size: Annotated[int, Field(ge=1, le=9)] = 3,
    tags: list[str] | None = None,
    mode: Literal["fast", "slow"] = "fast",
) -> dict[str, int]:
    """Paint a shape."""
    return {shape: size}


def grow(root: Node, limits: dict[str, float] = {}) -> Node:  # noqa: B006 - as servers really write it
    """Grow a tree."""
    return root


def count() -> list[int]:
    """Count."""
    return [1, 2]


@pytest.fixture
async def pack() -> Pack:
    """What the server lists over the protocol itself."""
    server = FastMCP("real")
    server.tool(paint)
    server.tool(grow)
    server.tool(count)
    async with Client(server) as client:
        listed = await client.list_tools()
    tools = tuple(tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed)
    return make_proxied_pack(ServerIdentity("real", "e1"), "real", ServerDefinitions(tools))


async def test_signatures_read_as_the_functions_do(pack: Pack) -> None:
    assert signature_text(pack.tools["paint"]) == (
        "real.paint(shape: str, colour: Literal['red', 'blue'] = 'red', size: int = 3, "
        "tags: list[str] | None = None, mode: Literal['fast', 'slow'] = 'fast') -> dict[str, int]"
    )
    assert signature_text(pack.tools["grow"]) == (
        "real.grow(root: {name: str, children?: list[dict], note?: str | None}, limits: dict[str, float] = {})"
        " -> {name: str, children?: list[{name: str, children?: list[dict], note?: str | None}], note?: str | None}"
    )
    assert signature_text(pack.tools["count"]) == "real.count() -> list[int]"
    assert pack.tools["paint"].description == "Paint a shape."
    assert pack.tools["paint"].parameters[0].description == "What to paint"


async def test_arguments_are_held_to_the_functions_own_rules(pack: Pack) -> None:
    check = SchemaCheck()
    tree = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    assert await check.check(pack.tools["grow"], {"root": tree, "limits": {"x": 1.5}})
    with pytest.raises(InvalidArguments, match=r"argument 'root\['children'\]\[0\]' must have 'name'"):
        await check.check(pack.tools["grow"], {"root": {"name": "a", "children": [{}]}})
    with pytest.raises(InvalidArguments, match="argument 'size' must be at most 9, not 10"):
        await check.check(pack.tools["paint"], {"shape": "x", "size": 10})
