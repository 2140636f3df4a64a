"""Lists of tools, as real servers and libraries write them, kept and remembered by server and address."""

from __future__ import annotations

import enum
import stat
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from fastmcp import Client, FastMCP
from mcp_types import JSONRPCResponse
from pydantic import BaseModel, Field

from ot.errors import InvalidArguments
from ot.execution.schema_check import SchemaCheck
from ot.proxied.catalogue_files import CatalogueFiles
from ot.proxied.definitions import MAX_BYTES, ServerDefinitions, outside_reference, size_of_definition, within_limits
from ot.proxied.proxied_pack import make_proxied_pack
from ot.proxied.tool_lists import ToolLists
from ot.registry.proxy_target import ServerIdentity
from ot.registry.tool import signature_text
from ot.registry.tool_registry import Pack
from pace import effort

pytestmark = pytest.mark.anyio


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"items": value}
    return value


CYCLE: dict[str, Any] = {}
CYCLE["items"] = CYCLE


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({"name": "a", "inputSchema": {"type": "object"}}, ""),
        (nested(60), ""),
        (nested(70), "it is nested more than 64 levels deep"),
        (nested(100_000), "it is nested more than 64 levels deep"),
        (CYCLE, "it is nested more than 64 levels deep"),
        ({"description": "x" * MAX_BYTES}, "it is larger than 1 MiB"),
        ({"enum": [0] * 1_000_000}, "it is larger than 1 MiB"),
        ({f"key{n}": 1 for n in range(200_000)}, "it is larger than 1 MiB"),
    ],
)
def test_a_definition_is_small_and_shallow(definition: Any, why: str) -> None:
    with effort() as spent:
        assert size_of_definition(definition)[1] == why
    assert spent.loops < 400


@pytest.mark.parametrize(
    ("schema", "address"),
    [
        ({"$ref": "#/$defs/a"}, ""),
        ({"$ref": "other.json"}, ""),
        ({"properties": {"$ref": {"type": "string"}}}, ""),
        ({"default": {"$ref": "http://x/y"}}, ""),
        ({"properties": {"a": {"$ref": "http://x/y"}}}, "http://x/y"),
        ({"anyOf": [{"$ref": "file:///etc/passwd"}]}, "file:///etc/passwd"),
        ({"$dynamicRef": "https://x/y#a"}, "https://x/y#a"),
        ({"$ref": "//host/x"}, "//host/x"),
    ],
)
def test_references_to_elsewhere_are_found(schema: Any, address: str) -> None:
    assert outside_reference(schema) == address


def test_what_cannot_be_used_is_left_out_with_a_reason() -> None:
    tools: tuple[dict[str, Any], ...] = (
        {"name": "good"},
        {"name": "good", "description": "again"},
        {"name": "huge", "description": "x" * (10 << 20)},
        {"name": "far", "inputSchema": {"$ref": "http://127.0.0.1:9/schema"}},
        {"name": 3},
        {},
    )
    usable = within_limits(ServerDefinitions(tools, left_out={"worse": "its schema cannot be read"}))
    assert usable.tools == ({"name": "good"},)
    assert usable.left_out == {
        "worse": "its schema cannot be read",
        "good": "another tool has the same name",
        "huge": "it is larger than 1 MiB",
        "far": "its schema refers to http://127.0.0.1:9/schema, and nothing outside is looked up",
        "?": "a tool without a name",
    }


def test_all_definitions_together_are_bounded() -> None:
    large = "x" * 1_000_000
    usable = within_limits(ServerDefinitions(tuple({"name": f"t{n}", "description": large} for n in range(20))))
    assert len(usable.tools) == 16
    assert set(usable.left_out.values()) == {"all definitions together are larger than 16 MiB"}


SEARCH: dict[str, Any] = {"name": "search", "inputSchema": {"type": "object", "maximum": 10**30}}
OFFERED = ServerDefinitions((SEARCH,), ({"name": "greet"},), True, "Be kind.", {"name": "x"}, 17.5)


def test_what_was_offered_comes_back_as_it_was(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path / "servers")
    assert catalogue.read(ServerIdentity("github", "e1")) is None
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    assert CatalogueFiles(tmp_path / "servers").read(ServerIdentity("github", "e1")) == OFFERED
    assert catalogue.read(ServerIdentity("github", "e2")) is None
    assert catalogue.read(ServerIdentity("gitlab", "e1")) is None
    (file,) = (tmp_path / "servers").glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_an_older_version_remembered_for_one_directory_is_taken_over_once(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("github", "of a directory"), OFFERED)
    (old,) = tmp_path.glob("*.json")
    assert catalogue.read(ServerIdentity("github", "e1", former="of a directory")) == OFFERED
    assert not old.exists()
    assert catalogue.read(ServerIdentity("github", "e1", former="of another")) == OFFERED


def test_names_that_a_file_cannot_have_do_not_meet(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("a/../b", "e"), OFFERED)
    assert catalogue.read(ServerIdentity("a_.._b", "e")) is None
    assert catalogue.read(ServerIdentity("a/../b", "e")) == OFFERED
    assert [file.parent for file in tmp_path.rglob("*.json")] == [tmp_path]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff", b"[" * 100_000, b'{"version": 1}', b'{"version": 1, "definitions": 3}']
)
def test_a_damaged_file_is_passed_over_and_written_anew(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(damage)
    assert catalogue.read(ServerIdentity("github", "e1")) is None
    assert str(file) in caplog.text
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    assert catalogue.read(ServerIdentity("github", "e1")) == OFFERED


def test_a_tool_over_the_limits_is_not_remembered(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    huge = {"name": "huge", "description": "x" * (2 << 20)}
    catalogue.write(ServerIdentity("github", "e1"), ServerDefinitions((SEARCH, huge)))
    found = catalogue.read(ServerIdentity("github", "e1"))
    assert found
    assert found.tools == (SEARCH,)


def test_a_directory_that_cannot_be_written_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "servers").write_text("a file")
    CatalogueFiles(tmp_path / "servers").write(ServerIdentity("github", "e1"), OFFERED)
    assert "could not be remembered" in caplog.text


GOOD = {"name": "good", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
VERSIONS = ("2025-06-18", "2025-11-25")


def listed(*tools: Any, version: str = "2025-06-18") -> list[Any]:
    lists = ToolLists("server")
    lists.repair(JSONRPCResponse(jsonrpc="2.0", id=1, result={"protocolVersion": version}))
    message = JSONRPCResponse(jsonrpc="2.0", id=2, result={"tools": [dict(tool) for tool in tools]})
    lists.repair(message)
    return message.result["tools"]


def test_a_good_list_stays_as_it_is() -> None:
    assert listed(GOOD) == [GOOD]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_schema_that_says_nothing_takes_any_arguments(version: str) -> None:
    bare = {"name": "bare", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}}
    good, mended = listed(GOOD, bare, version=version)
    assert good["name"] == "good"
    assert mended["inputSchema"]["type"] == "object"
    assert mended["inputSchema"]["additionalProperties"] is True


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "x"},
        {"name": "x", "inputSchema": None},
        {"name": "x", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "x", "inputSchema": {"type": "object", "properties": {"a": None}}},
        {"name": "x", "inputSchema": {"type": "object", "properties": []}},
        {"name": "x", "inputSchema": {"type": "object", "required": "a"}},
        {"name": "x", "inputSchema": {"type": ["object", "null"]}},
        {"name": "x", "description": 5, "inputSchema": {"type": "object"}},
        {"name": "x", "annotations": [], "inputSchema": {"type": "object"}},
        {"name": "x", "outputSchema": {"type": "array"}, "inputSchema": {"type": "object"}},
        {"name": "x", "outputSchema": "none", "inputSchema": {"type": "object"}},
    ],
)
def test_definitions_that_can_be_repaired_are_kept(bad: dict[str, Any]) -> None:
    assert [tool["name"] for tool in listed(bad, GOOD)] == ["x", "good"]


def test_a_definition_that_cannot_be_repaired_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=2, result={"tools": [{"inputSchema": {}}, 5, {"name": []}, dict(GOOD)]})
    ToolLists("server").repair(message)
    lists = ToolLists("server")
    lists.repair(JSONRPCResponse(jsonrpc="2.0", id=1, result={"protocolVersion": "2025-06-18"}))
    message = JSONRPCResponse(jsonrpc="2.0", id=2, result={"tools": [{"inputSchema": {}}, 5, {"name": []}, dict(GOOD)]})
    lists.repair(message)
    assert message.result["tools"] == [GOOD | {"inputSchema": GOOD["inputSchema"]}]
    assert "is left out" in caplog.text


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
