"""What another OneTool announces of its tools is taken for its form, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ot.registry.announced_tool import announcement, is_announced, read_announced_tool, revision_of
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_definitions import ToolDefinitions

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
def test_an_announcement_that_does_not_fit_is_none(changes: dict[str, Any]) -> None:
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
