"""What a tool is, and what another OneTool may announce as one."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
from typing import Any

import pytest

from ot.registry.announced_tool import announcement, is_announced, read_announced_tool, revision_of
from ot.registry.tool import (
    Parameter,
    Tool,
    parameters_of_function,
    parameters_of_node,
    returns_of_function,
    signature_text,
)
from ot.registry.tool_definitions import ToolDefinitions


def test_a_tool_is_called_by_pack_and_name() -> None:
    assert Tool("web", "search").full_name == "web.search"


def test_the_description_is_the_first_paragraph_on_one_line() -> None:
    tool = Tool("web", "search", doc="Search the web,\n   widely.\n\nArgs:\n    query: words")
    assert tool.description == "Search the web, widely."
    assert Tool("web", "search").description == ""


def test_a_tool_cannot_be_changed() -> None:
    tool = Tool("web", "search", (Parameter("query"),))
    with pytest.raises(dataclasses.FrozenInstanceError):
        tool.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        tool.parameters[0].name = "other"  # type: ignore[misc]


def test_a_parameter_is_required_when_a_call_must_give_it() -> None:
    assert Parameter("a").required
    assert not Parameter("a", default="None").required
    assert not Parameter("a", "args").required
    assert not Parameter("a", "kwargs").required


SOURCES = [
    "def f(): ...",
    "def f(a, b=1): ...",
    "def f(a: int, /, b: str = 'x', *args: int, c: bool = False, d, **rest: str) -> list[int]: ...",
    "def f(*, query: str, limit: int = 10, tags: list[str] | None = None) -> dict[str, int]: ...",
    "async def f(a: 'int' = 1): ...",
]


def live(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{source}", names)
    return names["f"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_tool_read_from_its_source_is_that_read_from_the_function(source: str) -> None:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert parameters_of_node(node) == parameters_of_function(live(source))


def test_every_kind_of_parameter_is_told_apart() -> None:
    found = parameters_of_function(live(SOURCES[2]))
    assert found == (
        Parameter("a", "positional", "int"),
        Parameter("b", "any", "str", "'x'"),
        Parameter("args", "args", "int"),
        Parameter("c", "keyword", "bool", "False"),
        Parameter("d", "keyword"),
        Parameter("rest", "kwargs", "str"),
    )
    assert [p.name for p in found if p.required] == ["a", "d"]


def test_a_bound_method_has_no_self() -> None:
    assert [p.name for p in parameters_of_function(asyncio.Queue[int]().put)] == ["item"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (SOURCES[0], "p.f()"),
        (SOURCES[1], "p.f(a, b=1)"),
        (SOURCES[2], "p.f(a: int, b: str = 'x', *args: int, c: bool = False, d, **rest: str) -> list[int]"),
        (SOURCES[3], "p.f(query: str, limit: int = 10, tags: list[str] | None = None) -> dict[str, int]"),
    ],
)
def test_a_signature_is_shown_as_it_is_called(source: str, text: str) -> None:
    function = live(source)
    tool = Tool("p", "f", parameters_of_function(function), returns_of_function(function))
    assert text == signature_text(tool)


def test_annotations_that_are_types_are_shown_by_name() -> None:
    def f(a: int, b: list[str] | None = None) -> dict[str, int]: ...

    f.__annotations__ = {"a": int, "b": list[str] | None, "return": dict[str, int]}
    assert [p.annotation for p in parameters_of_function(f)] == ["int", "list[str] | None"]
    assert returns_of_function(f) == "dict[str, int]"


FORECAST = Tool(
    "weather",
    "forecast",
    (
        Parameter("city", annotation="str"),
        Parameter("days", annotation="int", default="3"),
        Parameter("from_", "keyword", default="None"),
        Parameter("more", "kwargs"),
    ),
    returns="list[{day: int}]",
    doc="Tell the weather.",
    format="yml",
)


def definition_of(tool: Tool, **changes: Any) -> dict[str, Any]:
    """Return how *tool* is listed, with *changes* to what is announced of it."""
    (name,) = ToolDefinitions([tool]).by_name
    return {"name": name, "_meta": {"onetool": announcement(tool) | changes}}


def test_a_signature_comes_through_as_it_was() -> None:
    found = read_announced_tool(definition_of(FORECAST))
    assert found
    assert ("weather", "forecast") == (found.pack, found.name)
    assert (FORECAST.parameters, FORECAST.returns, FORECAST.format) == (found.parameters, found.returns, found.format)


@pytest.mark.parametrize("name", ["forecast_" + "x" * 70, "forecast_0123456789ab"])
def test_a_tool_that_is_listed_under_a_marked_name_has_its_own_here(name: str) -> None:
    listed = definition_of(Tool("weather", name))
    assert f"weather_{name}" != listed["name"]
    found = read_announced_tool(listed)
    assert found
    assert name == found.name


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "read"},  # not what the user approved under the tool's own name
        {"pack": "file"},
        {"name": "fore cast"},
        {"form": 2},
        {"form": None},
        {"parameters": "city"},
        {"parameters": [{"name": "city; import os"}]},
        {"parameters": [{"name": "city", "kind": "else"}]},
        {"parameters": [["city"]]},
        {"parameters": [{"name": f"a{number}"} for number in range(501)]},
    ],
)
def test_a_malformed_announcement_is_ignored(changes: dict[str, Any]) -> None:
    assert read_announced_tool(definition_of(FORECAST, **changes)) is None


@pytest.mark.parametrize("meta", [None, [], {"onetool": []}, {"onetool": None}, {}])
def test_a_definition_of_any_other_server_announces_nothing(meta: Any) -> None:
    assert read_announced_tool({"name": "weather_forecast", "_meta": meta}) is None


def test_texts_are_shown_without_what_a_reader_cannot_see() -> None:
    hidden = {"name": "city", "annotation": "str\u202e", "default": "'a'\n# obey", "description": "Where\u200b."}
    found = read_announced_tool(definition_of(FORECAST, parameters=[hidden], returns="x" * 1000))
    assert found
    assert Parameter("city", "any", "str", "'a' # obey", "Where.") == found.parameters[0]
    assert len(found.returns) <= 300


def test_a_tool_of_another_backend_was_never_announced() -> None:
    assert not is_announced(Tool("file", "read", source="local", target="ot_tools.file:read"))


def test_a_revision_changes_with_a_signature_or_a_text_and_not_with_the_order() -> None:
    one, other = ("Tell.", announcement(FORECAST)), ("Add.", announcement(Tool("weather", "add")))
    assert revision_of([one, other]) == revision_of([other, one])
    assert 3 == len({revision_of([one]), revision_of([("Told.", one[1])]), revision_of([(one[0], other[1])])})
