"""Lists of tools as real servers write them: what can be mended is, and one bad tool does not lose the others."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import JSONRPCResponse

from ot.servers.tool_lists import ToolLists

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
def test_what_can_be_mended_is(bad: dict[str, Any]) -> None:
    assert [tool["name"] for tool in listed(bad, GOOD)] == ["x", "good"]


def test_what_cannot_be_mended_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=2, result={"tools": [{"inputSchema": {}}, 5, {"name": []}, dict(GOOD)]})
    ToolLists("server").repair(message)
    lists = ToolLists("server")
    lists.repair(JSONRPCResponse(jsonrpc="2.0", id=1, result={"protocolVersion": "2025-06-18"}))
    message = JSONRPCResponse(jsonrpc="2.0", id=2, result={"tools": [{"inputSchema": {}}, 5, {"name": []}, dict(GOOD)]})
    lists.repair(message)
    assert message.result["tools"] == [GOOD | {"inputSchema": GOOD["inputSchema"]}]
    assert "is left out" in caplog.text
