"""A server's definitions become a pack: names, signatures, hints, filters, and what is not a tool."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ot.registry.proxy_target import ProxyTarget, ServerIdentity
from ot.registry.tool import Tool, signature_text
from ot.servers.definition_pins import DefinitionPins
from ot.servers.definitions import ServerDefinitions
from ot.servers.learned_shapes import LearnedShapes
from ot.servers.proxied_pack import UNASKED, is_offered, make_proxied_pack, tools_of_server
from registry.json_schemas import SCHEMAS

GITHUB = ServerIdentity("github", "e1")
GIT_HUB = ServerIdentity("git-hub", "e1")
SEARCH: dict[str, Any] = {
    "name": "search-issues",
    "description": "Search\u200b issues.\n\nMore words.",
    "inputSchema": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "max-results": {"type": "integer", "default": 5}},
        "required": ["q"],
    },
    "annotations": {"readOnlyHint": True},
}
CLOSE: dict[str, Any] = {
    "name": "close",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"closed": {"type": "boolean"}}, "required": ["closed"]},
    "annotations": {"destructiveHint": True, "readOnlyHint": False},
}


def tools(*definitions: dict[str, Any], **options: Any) -> dict[str, Tool]:
    found = tools_of_server(GIT_HUB, "gh", ServerDefinitions(definitions, **options))
    return {tool.name: tool for tool in found}


def test_a_definition_becomes_a_tool() -> None:
    tool = tools(SEARCH)["search_issues"]
    assert signature_text(tool) == "gh.search_issues(q: str, max_results: int = 5)"
    assert (tool.source, tool.backend) == ("proxy:git-hub", "mcp_proxy")
    assert tool.description == "Search issues."
    assert tool.read_only is True
    assert tool.destructive is False
    assert tool.input_schema == SEARCH["inputSchema"]
    target = ProxyTarget.of(tool.target)
    assert target == ProxyTarget("git-hub", "e1", "search-issues", names={"max_results": "max-results"})
    assert target.rename_arguments({"q": "x", "max_results": 3}) == {"q": "x", "max-results": 3}


def test_hints_and_return_types_are_taken_over() -> None:
    tool = tools(CLOSE)["close"]
    assert (tool.read_only, tool.destructive, tool.returns) == (False, True, "{closed: bool}")
    silent = tools({"name": "x", "annotations": {"readOnlyHint": "yes", "destructiveHint": 1}})["x"]
    assert (silent.read_only, silent.destructive) == (None, False)


def test_names_that_meet_get_a_number_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    found = tools({"name": "a-b"}, {"name": "a_b"}, {"name": "from"})
    assert {name: ProxyTarget.of(tool.target).tool for name, tool in found.items()} == {
        "a_b_2": "a-b",
        "a_b": "a_b",
        "from_": "from",
    }
    assert "the tool 'a-b' is called a_b_2, another one has that name" in caplog.text


@pytest.mark.scenario("004-09")
def test_a_tool_that_a_server_lists_twice_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    listed = [{"name": "a", "description": "old"}, {"name": "a", "description": "new"}]
    assert tools(*listed)["a"].doc == "new"
    assert "the tool a is listed twice, the later one counts" in caplog.text


def test_resources_and_prompts_are_tools_where_the_server_has_them() -> None:
    assert tools(CLOSE).keys() == {"close"}
    found = tools({"name": "prompts"}, prompts=({"name": "greet"},), has_resources=True)
    assert found.keys() == {"prompts", "prompt", "resources", "resource"}
    assert ProxyTarget.of(found["prompts"].target).tool == "prompts"
    assert ProxyTarget.of(found["resource"].target) == ProxyTarget("git-hub", method="resources/read")
    assert signature_text(found["resource"]) == "gh.resource(uri: str) -> Any"
    filled = "{description: str, messages: list[{role: str, content: str | dict}]}"
    assert signature_text(found["prompt"]) == f"gh.prompt(name: str, arguments: dict[str, str] = {{}}) -> {filled}"
    assert found["resources"].read_only


@pytest.mark.parametrize(
    ("filter", "offered"),
    [
        ((), {"get-issue", "get_pr", "delete"}),
        (("get*",), {"get-issue", "get_pr"}),
        (("get_issue",), {"get-issue"}),
        (("get-issue",), {"get-issue"}),
        (("!delete",), {"get-issue", "get_pr"}),
        (("get*", "!*_pr"), {"get-issue"}),
        (("none",), set[str]()),
    ],
)
def test_patterns_choose_the_tools_that_are_offered(filter: tuple[str, ...], offered: set[str]) -> None:
    assert {name for name in ("get-issue", "get_pr", "delete") if is_offered(name, filter)} == offered


def test_a_server_that_was_never_listed_is_a_pack_that_says_so() -> None:
    pack = make_proxied_pack(GITHUB, "gh", None)
    assert pack.source == "proxy"
    assert (pack.pending, pack.broken) == (True, UNASKED)
    assert make_proxied_pack(GITHUB, "gh", None, "the command 'npx' was not found").broken == (
        "the command 'npx' was not found"
    )


def test_what_is_learned_is_shown_at_once(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path, write_seconds=60)
    pack = make_proxied_pack(GITHUB, "gh", ServerDefinitions((SEARCH, CLOSE)), shapes=shapes)
    assert pack.tools is pack.tools
    shapes.learn_from(pack.tools["search_issues"], [{"id": 1}])
    shapes.learn_from(pack.tools["search_issues"], [{"id": 2, "title": "x"}])
    shapes.learn_from(pack.tools["close"], {"closed": True, "more": 1})
    assert signature_text(pack.tools["search_issues"]) == (
        "gh.search_issues(q: str, max_results: int = 5) -> list[{id: int, title?: str}]  (observed 2x)"
    )
    assert signature_text(pack.tools["close"]) == "gh.close() -> {closed: bool}"
    changed = ServerDefinitions((SEARCH | {"description": "other"},))
    again = make_proxied_pack(GITHUB, "gh", changed, shapes=shapes)
    assert again.tools["search_issues"].returns == ""
    shapes.flush()


def test_a_listing_is_compared_with_what_was_approved(tmp_path: Path) -> None:
    pins = DefinitionPins(tmp_path)
    make_proxied_pack(GITHUB, "gh", ServerDefinitions((SEARCH,)), pins=pins)
    make_proxied_pack(GITHUB, "gh", ServerDefinitions((SEARCH, CLOSE)), pins=pins)
    assert [str(change) for change in pins.list_changes("github")] == ["github.close: new tool"]


def test_a_copy_of_a_pack_shows_what_is_learned_too(tmp_path: Path) -> None:
    shapes = LearnedShapes(tmp_path, write_seconds=60)
    pack = make_proxied_pack(GITHUB, "gh", ServerDefinitions((SEARCH,)), shapes=shapes)
    shapes.learn_from(pack.tools["search_issues"], 1)
    copied = dataclasses.replace(pack, read_tools=lambda: pack.tools.values())
    assert copied.tools["search_issues"].returns == "int"
    shapes.learn_from(copied.tools["search_issues"], "x")
    assert copied.tools["search_issues"].returns == "int | str"
    shapes.flush()


def test_the_servers_own_time_limit_holds_for_its_tools() -> None:
    pack = make_proxied_pack(GITHUB, "gh", ServerDefinitions((SEARCH,)), timeout=7.0)
    assert pack.tools["search_issues"].timeout == 7.0


@given(SCHEMAS, SCHEMAS)
@settings(max_examples=60, deadline=None)
def test_any_definition_is_a_tool_or_is_left_out(schema: Any, output: Any) -> None:
    definition = {"name": "x", "description": schema, "inputSchema": schema, "outputSchema": output}
    pack = make_proxied_pack(ServerIdentity("s", "e1"), "p", ServerDefinitions((definition, SEARCH)))
    assert {"search_issues"} <= pack.tools.keys() <= {"x", "search_issues"}
    for tool in pack.tools.values():
        assert len(signature_text(tool)) < 10_000
