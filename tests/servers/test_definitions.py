"""Definitions that are too large, too deep, or not complete are left out, quickly."""

from __future__ import annotations

from typing import Any

import pytest

from ot.servers.definitions import MAX_BYTES, ServerDefinitions, outside_reference, size_of_definition, within_limits
from pace import effort


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
