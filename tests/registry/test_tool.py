"""A tool is plain data, and its signature reads as a caller would write it."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
from typing import Any

import pytest

from ot.registry.tool import (
    Parameter,
    Tool,
    parameters_of_function,
    parameters_of_node,
    returns_of_function,
    signature_text,
)


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
def test_source_and_function_agree(source: str) -> None:
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
