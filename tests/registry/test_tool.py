"""A tool is plain data."""

from __future__ import annotations

import dataclasses

import pytest

from ot.registry.tool import Parameter, Tool


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
