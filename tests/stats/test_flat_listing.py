"""What a flat list of all tools would take."""

from __future__ import annotations

import json

from ot.errors import ToolUnavailable
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.stats.flat_listing import definition, flat_chars

QUERY = Parameter("query", "keyword", "str", None, "What to look for.")
COUNT = Parameter("count", "keyword", "int", "5")
TOOL = Tool("brave", "search", (QUERY, COUNT), doc="Search the web.")


def broken() -> list[Tool]:
    raise ToolUnavailable("bad", "it cannot be read")


def test_a_definition_is_what_a_client_would_list() -> None:
    assert definition(TOOL) == {
        "name": "brave_search",
        "description": "Search the web.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "count": {"type": "integer"},
            },
            "required": ["query"],
        },
    }
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    assert definition(Tool("p", "t", input_schema=schema))["inputSchema"] == schema


def test_all_packs_count_but_our_own_and_those_that_cannot_be_read() -> None:
    packs = [
        Pack("brave", "local", lambda: [TOOL, TOOL]),
        Pack("ot", "local", lambda: [TOOL]),
        Pack("bad", "x", broken),
    ]
    assert flat_chars(ToolRegistry(packs)) == 2 * len(json.dumps(definition(TOOL)))


def test_packs_that_nobody_used_are_not_kept_in_memory() -> None:
    pack = Pack("brave", "local", lambda: [TOOL])
    flat_chars(ToolRegistry([pack]))
    assert "tools" not in vars(pack)
