"""Tools as model providers want to be told of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ot.execution.arguments import bind_arguments
from ot.proxied.proxied_pack import tool_of_definition
from ot.registry.proxy_target import ServerIdentity
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_definitions import (
    ToolDefinitions,
    parameters_schema,
    plain_schema,
    run_definition,
    schema_of_annotation,
)
from ot.registry.tool_loader import tools_of_functions
from ot.registry.tool_registry import Pack, ToolRegistry
from run_app import running_app

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def search(query: str, limit: int = 10, *, deep: bool = False, where: str | None = None) -> list[str]:
    """Search the web.

    Args:
        query: What for.
        limit: How many
            at most.
    """
    return [query] * limit


SEARCH = tools_of_functions("web", {"search": search})[0]
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What for."},
        "limit": {"type": "integer", "description": "How many at most.", "default": 10},
        "deep": {"type": "boolean", "default": False},
        "where": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.scenario("004-06")
def test_a_tool_is_defined_as_each_provider_wants_it() -> None:
    (definition,) = ToolDefinitions([SEARCH]).all
    assert definition.for_anthropic() == {
        "name": "web_search",
        "description": "Search the web.",
        "input_schema": SCHEMA,
    }
    assert definition.for_completions() == {
        "type": "function",
        "function": {"name": "web_search", "description": "Search the web.", "parameters": plain_schema(SCHEMA)},
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("list", {"type": "array"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("Sequence[str]", {"type": "array", "items": {"type": "string"}}),
        ("tuple[str, ...]", {"type": "array", "items": {"type": "string"}}),
        ("tuple[str, int]", {"type": "array"}),
        ("list[Thing]", {"type": "array"}),
        ("dict", {"type": "object"}),
        (
            "dict[str, list[int]]",
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        ),
        ("dict[str, Any]", {"type": "object"}),
        ("Literal['a', 'b', 3, None]", {"enum": ["a", "b", 3, None]}),
        ("typing.Literal['a']", {"enum": ["a"]}),
        ("Optional[int]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("str | int | None", {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ("Union[str, str]", {"type": "string"}),
        ("str | Thing", {}),
        ("Annotated[int, Field(ge=1)]", {"type": "integer"}),
        ("'list[int]'", {"type": "array", "items": {"type": "integer"}}),
        ("Any", {}),
        ("Path", {}),
        ("", {}),
        ("not a type", {}),
        ("f(x)[3]", {}),
        ("Literal[x]", {}),
        ("Literal[b'x']", {}),
        ("list[" * 500 + "int" + "]" * 500, None),
    ],
    ids=range(30),
)
def test_an_annotation_is_a_schema_or_leaves_it_open(annotation: str, schema: dict[str, Any] | None) -> None:
    found = schema_of_annotation(annotation)
    assert schema is None or found == schema
    json.dumps(found)


@given(st.text(max_size=60))
def test_no_annotation_of_a_pack_makes_its_schema_raise(annotation: str) -> None:
    json.dumps(schema_of_annotation(annotation), allow_nan=False)


@pytest.mark.parametrize(
    ("default", "found"),
    [
        ("'x'", {"default": "x"}),
        ("1.5", {"default": 1.5}),
        ("None", {}),
        ("LIMIT", {}),
        ("[]", {}),
        ("1e999", {}),
        (None, {}),
    ],
    ids=range(7),
)
def test_a_default_is_told_when_it_is_a_plain_value(default: str | None, found: dict[str, Any]) -> None:
    schema = parameters_schema(Tool("p", "t", (Parameter("x", default=default),)))
    assert schema["properties"]["x"] == found
    assert schema["required"] == (["x"] if default is None else [])


def test_more_arguments_are_allowed_where_the_tool_takes_them() -> None:
    tool = Tool("p", "t", (Parameter("rest", "args"), Parameter("more", "kwargs")))
    assert parameters_schema(tool) == {"type": "object", "properties": {}, "required": [], "additionalProperties": True}


def test_a_tool_s_own_schema_is_used_without_what_providers_refuse() -> None:
    own = {"properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}], "$defs": {"x": {}}}
    assert parameters_schema(Tool("p", "t", input_schema=own)) == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "$defs": {"x": {}},
    }
    assert parameters_schema(Tool("p", "t", input_schema={})) == {"type": "object", "properties": {}}


def test_a_server_s_tool_is_defined_with_the_names_that_the_door_takes() -> None:
    named = {"max-results": {"type": "integer"}, "from": {"type": "string"}}
    schema = {"type": "object", "properties": named, "required": ["from"]}
    tool = tool_of_definition(ServerIdentity("web", "e1"), "web", "find", {"name": "find", "inputSchema": schema})
    found = parameters_schema(tool)
    assert found["required"] == ["from_"]
    assert bind_arguments(tool, (), dict.fromkeys(found["properties"], 1)) == {"max_results": 1, "from_": 1}


def test_parameters_that_only_parts_of_a_schema_name_are_told_of() -> None:
    by_id, by_name = ({"properties": {name: {"type": "string"}}, "required": [name]} for name in ("id", "name"))
    schema = {"type": "object", "properties": {"all": {}}, "anyOf": [by_id, by_name], "$ref": "#/$defs/x"}
    own = {**schema, "$defs": {"x": {"properties": {"deep": {}}, "required": ["deep"]}}}
    found = parameters_schema(Tool("p", "t", input_schema=own))
    assert list(found["properties"]) == ["all", "deep", "id", "name"]
    assert found["required"] == ["deep"]


def test_names_that_would_be_one_are_told_apart_whatever_the_order() -> None:
    tools = [Tool("a_b", "c"), Tool("a", "b_c"), Tool("a", "d")]
    forward, backward = ToolDefinitions(tools).by_name, ToolDefinitions(reversed(tools)).by_name
    assert forward == backward
    assert len(forward) == 3
    assert forward["a_d"] is tools[2]
    assert "a_b_c" not in forward


def test_no_tool_can_take_the_marked_name_of_another() -> None:
    victim, twin = Tool("a_b", "c"), Tool("a", "b_c")
    names = {tool.full_name: name for name, tool in ToolDefinitions([victim, twin]).by_name.items()}
    thief = Tool("a", names["a_b.c"].removeprefix("a_"))
    found = ToolDefinitions([victim, twin, thief]).by_name
    assert found[names["a_b.c"]] is victim
    assert len(found) == 3


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), unique_by=lambda pair: f"{pair[0]}.{pair[1]}"))
def test_every_name_is_legal_and_leads_back_to_its_tool(names: list[tuple[str, str]]) -> None:
    tools = [Tool(pack, name) for pack, name in names]
    found = ToolDefinitions(tools)
    assert sorted(map(id, tools)) == sorted(map(id, found.by_name.values()))
    assert all(LEGAL.fullmatch(definition.name) for definition in found.all)


def test_tools_are_chosen_by_pack_or_by_pattern() -> None:
    def pack(name: str, *tools: str) -> Pack:
        return Pack(name, "local", lambda: [Tool(name, tool) for tool in tools])

    registry = ToolRegistry([pack("web", "search", "fetch"), pack("file", "read")])
    assert list(ToolDefinitions.choose(registry).by_name) == ["file_read", "web_fetch", "web_search"]
    assert list(ToolDefinitions.choose(registry, ["web"]).by_name) == ["web_fetch", "web_search"]
    assert list(ToolDefinitions.choose(registry, ["web.f*", "file.read"]).by_name) == ["file_read", "web_fetch"]
    assert list(ToolDefinitions.choose(registry, []).by_name) == []


def test_a_description_is_never_empty_nor_too_long() -> None:
    (bare, long) = ToolDefinitions([Tool("p", "bare"), Tool("p", "long", doc="x" * 3000)]).all
    assert bare.description == "p.bare()"
    assert len(long.description) == 1024


def test_the_one_tool_run_has_a_definition_too() -> None:
    found = run_definition("Run a program.").for_anthropic()
    assert (found["name"], found["description"]) == ("run", "Run a program.")
    assert found["input_schema"]["required"] == ["command"]


@pytest.mark.anyio
@pytest.mark.scenario("004-06", "004-08")
async def test_every_tool_of_a_house_has_a_unique_name_a_description_and_a_sound_schema(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        definitions = ToolDefinitions.choose(app.picture.registry).all
        assert len(definitions) == len(app.tool_names()) == len({definition.name for definition in definitions})
    assert {"file_read", "guide_create", "ot_help"} <= {definition.name for definition in definitions}
    for definition in definitions:
        assert LEGAL.fullmatch(definition.name)
        assert definition.description
        assert definition.parameters["type"] == "object"
        Draft202012Validator.check_schema(json.loads(json.dumps(definition.parameters, allow_nan=False)))
