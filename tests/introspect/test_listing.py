"""Lists of tools, packs and aliases, at three levels of detail."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ot.errors import ToolUnavailable
from ot.introspect.listing import check_info, docstring_parts, list_aliases, list_packs, list_tools
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry

DOC = """Search the web.

Args:
    query: Words to
        search for.
    count: How many.

Returns:
    The hits.

Example:
    web.search(query="x")
    web.search(query="y", count=2)
"""
SEARCH = Tool("web", "search", (Parameter("query", "keyword", "str"),), "list", DOC)
FETCH = Tool("web", "fetch", doc="Fetch a page.")


def unreadable() -> Iterable[Tool]:
    raise ToolUnavailable("broken", "broken.py:1: invalid syntax")


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry(
        [
            Pack("web", "local", lambda: [SEARCH, FETCH]),
            Pack("Files", "local", lambda: [Tool("Files", "read")]),
            Pack("broken", "local", unreadable),
        ]
    )


def test_tools_are_listed_by_name(registry: ToolRegistry) -> None:
    assert list_tools(registry, "", "list") == ["Files.read", "web.fetch", "web.search"]


def test_a_pattern_is_part_of_the_full_name_in_any_case(registry: ToolRegistry) -> None:
    assert list_tools(registry, "FILES", "list") == ["Files.read"]
    assert list_tools(registry, "b.s", "list") == ["web.search"]
    assert list_tools(registry, "nothing", "list") == []


def test_min_is_name_and_description(registry: ToolRegistry) -> None:
    assert list_tools(registry, "fetch", "min") == [{"name": "web.fetch", "description": "Fetch a page."}]


def test_full_is_everything_known(registry: ToolRegistry) -> None:
    assert list_tools(registry, "search", "full") == [
        {
            "name": "web.search",
            "signature": "web.search(query: str) -> list",
            "description": "Search the web.",
            "source": "local",
            "args": ["query: Words to search for.", "count: How many."],
            "returns": "The hits.",
            "example": 'web.search(query="x")\nweb.search(query="y", count=2)',
        }
    ]


def test_a_docstring_without_parts_has_none() -> None:
    assert docstring_parts(FETCH) == {}
    assert docstring_parts(Tool("a", "b")) == {}


def test_descriptions_of_parameters_stand_in_for_a_docstring() -> None:
    described = Tool("a", "b", (Parameter("x", description="The x."), Parameter("y")))
    assert docstring_parts(described) == {"args": ["x: The x."]}


def test_packs_are_listed_with_what_is_wrong(registry: ToolRegistry) -> None:
    assert list_packs(registry, "", "list", {}) == ["Files", "broken", "web"]
    assert list_packs(registry, "", "min", {}) == [
        {"name": "Files", "source": "local", "tool_count": 1},
        {"name": "broken", "source": "local", "tool_count": 0, "broken": "broken.py:1: invalid syntax"},
        {"name": "web", "source": "local", "tool_count": 2},
    ]


def test_a_pack_in_full_names_its_tools(registry: ToolRegistry) -> None:
    assert list_packs(registry, "WEB", "full", {}) == [
        {
            "name": "web",
            "source": "local",
            "tool_count": 2,
            "tools": [
                {"name": "web.fetch", "description": "Fetch a page."},
                {"name": "web.search", "description": "Search the web."},
            ],
        }
    ]


def test_a_pack_in_full_says_how_it_is_used_in_the_user_s_words_or_its_own() -> None:
    own = Pack("web", "proxy", lambda: [FETCH], instructions="Be gentle.\n")
    (entry,) = list_packs(ToolRegistry([own]), "", "full", {})
    assert entry["instructions"] == "Be gentle."
    (entry,) = list_packs(ToolRegistry([own]), "", "full", {"web": "Be quick."})
    assert entry["instructions"] == "Be quick."


@pytest.mark.parametrize("info", ["", "LIST", "all", "min "])
def test_an_unknown_level_is_answered_with_those_that_exist(info: str, registry: ToolRegistry) -> None:
    with pytest.raises(ValueError, match="info must be one of list, min, full, not "):
        check_info(info)
    with pytest.raises(ValueError, match="info must be one of"):
        list_tools(registry, "", info)
    with pytest.raises(ValueError, match="info must be one of"):
        list_packs(registry, "", info, {})


# ---------------------------------------------------------------- aliases

ALIASES = {"ws": "brave.web_search", "F": "file.read", "search": "rg.find"}


@pytest.mark.scenario("001-32", "001-35")
@pytest.mark.parametrize("info", ["min"])
def test_all_aliases_are_lines_of_name_and_target(info: str) -> None:
    assert list_aliases(ALIASES, "", info) == ["F -> file.read", "search -> rg.find", "ws -> brave.web_search"]


@pytest.mark.scenario("001-33")
def test_a_pattern_is_part_of_the_name_or_the_target_of_an_alias_in_any_case() -> None:
    assert list_aliases(ALIASES, "SEARCH", "list") == ["search", "ws"]
    assert list_aliases(ALIASES, "nothing", "list") == []


@pytest.mark.scenario("001-34")
def test_names_of_aliases_alone() -> None:
    assert list_aliases(ALIASES, "", "list") == ["F", "search", "ws"]


@pytest.mark.scenario("001-36")
def test_name_and_target_of_an_alias_apart() -> None:
    assert list_aliases(ALIASES, "f", "full")[0] == {"name": "F", "target": "file.read"}


def test_an_unknown_level_of_aliases_is_refused() -> None:
    with pytest.raises(ValueError, match="info must be one of"):
        list_aliases(ALIASES, "", "all")
