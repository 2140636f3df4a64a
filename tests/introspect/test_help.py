"""Help: an overview, a thing in full, or what fits some words."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from ot.introspect.help import MOST_HITS, OVERVIEW, search_tools, show_help, tool_help
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from run_app import error_of, running_app, value_of

DOC = """Search the web for pages.

Args:
    query: Words.

Returns:
    The hits.

Example:
    web.search(query="x")
"""
WEB = [
    Tool("web", "search", (Parameter("query", "keyword", "str"),), "list", DOC),
    Tool("web", "fetch", doc="Fetch one page of the web."),
]
FILE = [Tool("file", "search", doc="Find lines."), Tool("file", "read", doc="Read a file.")]


def registry(*more: Pack) -> ToolRegistry:
    return ToolRegistry([Pack("web", "local", lambda: WEB), Pack("file", "local", lambda: FILE), *more])


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_without_a_query_there_is_an_overview(query: str) -> None:
    assert show_help(registry(), query, "min") == OVERVIEW


def test_a_tool_s_name_gives_its_page() -> None:
    expected = """\
# web.search
Search the web for pages.

web.search(query: str) -> list

Args:
  query: Words.

Returns: The hits.

Example:
  web.search(query="x")"""
    assert expected == show_help(registry(), "web.search", "min") == tool_help(WEB[0])


def test_a_pack_s_name_gives_its_tools() -> None:
    page = show_help(registry(), "web", "list")
    assert page["tools"] == {"search": "Search the web for pages.", "fetch": "Fetch one page of the web."}


def test_words_give_the_tools_that_fit_them_best() -> None:
    assert show_help(registry(), "search web", "list")[0] == "web.search"
    assert show_help(registry(), "read", "list")[0] == "file.read"
    assert [hit["name"] for hit in show_help(registry(), "page", "min")] == ["web.fetch", "web.search"]
    assert show_help(registry(), "lines", "full")[0]["signature"] == "file.search()"


def test_a_slip_is_forgiven() -> None:
    assert "web.search" in show_help(registry(), "web.serch", "list")


def test_a_search_that_finds_nothing_says_where_to_look() -> None:
    text = show_help(registry(), "zzzzqqqq" * 100, "min")
    assert text.startswith("No matches for 'zzzzqqqq")
    assert text.endswith("Browse with ot.packs() or ot.tools().")
    assert len(text) < 200


def test_no_more_than_the_best_hits_are_shown() -> None:
    many = Pack("many", "local", lambda: [Tool("many", f"search_{n}") for n in range(100)])
    assert len(search_tools(registry(many), "search")) == MOST_HITS


def test_an_unknown_level_is_refused_even_where_it_is_not_used() -> None:
    with pytest.raises(ValueError, match="info must be one of"):
        show_help(registry(), "", "everything")


@pytest.mark.anyio
async def test_every_tool_s_example_is_a_program_that_names_it(tmp_path: Any) -> None:
    async with running_app(tmp_path) as app:
        for name in app.tool_names():
            example = app.tool_help(name).partition("\nExample:\n")[2]
            assert name in example, f"{name} has no example of itself"
            assert ast.parse("\n".join(line.strip() for line in example.splitlines()))


@pytest.mark.anyio
async def test_what_the_overview_says_is_true(tmp_path: Any) -> None:
    calls = re.findall(r"\bot\.\w+\((?:[^()]*)\)", OVERVIEW)
    assert len(calls) >= 7
    async with running_app(tmp_path) as app:
        for call in calls:
            reply = await app.run(call)
            if "handle=" in call:
                assert "not found" in error_of(reply)
            else:
                assert value_of(reply), call
