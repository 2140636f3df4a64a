"""What listings say of packs and tools, those of proxied servers too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ToolUnavailable
from ot.introspect.listing import check_info, docstring_parts, list_aliases, list_packs, list_tools
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.proxied_pack import UNASKED
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from proxied.proxied_desk import GITHUB, MERGE, SEARCH, app_with, github

pytestmark = pytest.mark.anyio

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
SEARCH_TOOL = Tool("web", "search", (Parameter("query", "keyword", "str"),), "list", DOC)
FETCH = Tool("web", "fetch", doc="Fetch a page.")


def unreadable() -> Iterable[Tool]:
    raise ToolUnavailable("broken", "broken.py:1: invalid syntax")


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry(
        [
            Pack("web", "local", lambda: [SEARCH_TOOL, FETCH]),
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


def test_info_full_shows_everything_known(registry: ToolRegistry) -> None:
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
def test_info_list_gives_only_names_of_aliases() -> None:
    assert list_aliases(ALIASES, "", "list") == ["F", "search", "ws"]


@pytest.mark.scenario("001-36")
def test_name_and_target_of_an_alias_apart() -> None:
    assert list_aliases(ALIASES, "f", "full")[0] == {"name": "F", "target": "file.read"}


def test_an_unknown_level_of_aliases_is_refused() -> None:
    with pytest.raises(ValueError, match="info must be one of"):
        list_aliases(ALIASES, "", "all")


async def asked(directory: Path, command: str, **options: Any) -> Any:
    """Return what a program with *command* as its value gets."""
    app = app_with(directory, github(**options))
    try:
        reply = await app.run(f'__format__ = "json"\n{command}')
    finally:
        await app.aclose()
    assert not reply.is_error, reply.texts
    return json.loads(reply.texts[-1])


@pytest.mark.scenario("001-01")
async def test_the_tools_of_proxied_servers_are_listed_with_the_others(tmp_path: Path) -> None:
    tools = await asked(tmp_path, "ot.tools()")
    assert {"name": "github.search", "description": "Search repositories."} in tools
    assert {"file.read", "github.merge_pull_request", "ot.tools"} <= {tool["name"] for tool in tools}


@pytest.mark.scenario("001-05", "001-06")
async def test_a_proxied_signature_comes_from_the_schema(tmp_path: Path) -> None:
    found = {entry["name"]: entry for entry in await asked(tmp_path, 'ot.tools(pattern="github", info="full")')}
    assert found["github.search"]["signature"] == (
        "github.search(query: str, repo: str = '...', perPage: float = 30, sort: Literal['stars', 'updated'] = '...')"
    )
    assert found["github.merge_pull_request"]["signature"] == (
        "github.merge_pull_request(pull_number: int) -> {merged: bool}"
    )
    assert found["github.search"]["source"] == "proxy:github"
    assert found["github.merge_pull_request"]["returns"] == "{merged: bool}"


@pytest.mark.scenario("001-07")
async def test_proxied_arguments_come_from_the_schema(tmp_path: Path) -> None:
    (entry,) = await asked(tmp_path, 'ot.tools(pattern="github.search", info="full")')
    assert entry["args"] == [
        "query: What to search for",
        "repo: Only in this repository",
        "perPage: Results a page",
    ]
    assert entry["description"] == "Search repositories."


@pytest.mark.scenario("001-28", "001-31")
async def test_a_proxied_server_is_a_pack(tmp_path: Path) -> None:
    assert await asked(tmp_path, 'ot.packs(pattern="github", info="full")') == [
        {
            "name": "github",
            "source": "proxy",
            "tool_count": 2,
            "tools": [
                {"name": "github.merge_pull_request", "description": "Merge it."},
                {"name": "github.search", "description": "Search repositories."},
            ],
        }
    ]


async def test_a_server_that_is_not_connected_says_why(tmp_path: Path) -> None:
    (entry,) = await asked(tmp_path, 'ot.packs(pattern="github")', definitions=None, why="the command is missing")
    assert entry == {"name": "github", "source": "proxy", "tool_count": 0, "broken": "the command is missing"}


async def test_a_server_that_was_never_asked_is_pending_and_not_broken(tmp_path: Path) -> None:
    (entry,) = await asked(tmp_path, 'ot.packs(pattern="github")', definitions=None)
    assert entry == {"name": "github", "source": "proxy", "tool_count": 0, "pending": UNASKED}
    assert (await asked(tmp_path, 'ot.health()["registry"]', definitions=None))["status"] == "ok"


async def test_a_learned_return_type_is_shown_as_observed(tmp_path: Path) -> None:
    app = app_with(tmp_path)
    pack = github(shapes=app.host.shapes)
    for _ in range(10):
        app.host.shapes.learn_from(pack.tools["search"], [{"id": 1, "full_name": "a/b"}])
    await app.aclose()
    app = app_with(tmp_path)
    await app.aclose()
    (found,) = await asked(tmp_path, '[ot.help(query="github.search")]', shapes=app.host.shapes)
    assert "-> list[{id: int, full_name: str}]  (observed 10x)" in found
    assert found.count("observed 10x") == 1


async def test_health_names_what_changed_in_words(tmp_path: Path) -> None:
    app = app_with(tmp_path)
    try:
        github(pins=app.pins)
        before = await app.run("ot.health()['proxy'].get('changed', {})")
        github(ServerDefinitions((SEARCH | {"description": "x"}, MERGE)), pins=app.pins)
        after = await app.run("ot.health()['proxy']['changed']")
    finally:
        await app.aclose()
    assert json.loads(before.texts[0]) == {}
    assert json.loads(after.texts[0]) == {"github": {"search": "description changed"}}


@pytest.mark.parametrize(("policy", "refused"), [("block", True), ("flag", False)])
async def test_the_policy_decides_whether_a_changed_tool_is_refused(tmp_path: Path, policy: str, refused: bool) -> None:
    changed = ServerDefinitions((SEARCH | {"description": "x"},))
    app = app_with(tmp_path, github(changed), policy={"changed_definitions": policy})
    try:
        github(GITHUB, pins=app.pins)
        github(changed, pins=app.pins)
        reply = await app.run("github.search(query=3)")
    finally:
        await app.aclose()
    assert reply.is_error
    words = "onetool approve github" if refused else "argument 'query' must be str, not int 3"
    assert words in reply.texts[-1]
