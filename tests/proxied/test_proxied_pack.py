"""A proxied server as a pack, and what another OneTool's packs may answer."""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from ot.errors import ServerUnavailable, ToolError, ToolFailed
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.learned_shapes import LearnedShapes
from ot.proxied.pack_replies import CopiedResult, PackReply, ending, progress_of
from ot.proxied.proxied_pack import UNASKED, is_offered, make_proxied_pack, tools_of_server
from ot.registry.proxy_target import ProxyTarget, ServerIdentity
from ot.registry.tool import Tool, signature_text
from ot.values.parts import Unread
from ot_sdk.redaction import Redactor
from registry.json_schemas import SCHEMAS

pytestmark = pytest.mark.anyio

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


TOOL = Tool("weather", "forecast")


class Pages:
    """Stands for the client of a host that has something stored."""

    def __init__(self, *pages: bytes) -> None:
        self._pages = list(pages)
        self.asked: list[str] = []

    async def read_resource_mcp(self, uri: str) -> Any:
        self.asked.append(uri)
        page = self._pages.pop(0) if self._pages else b""
        return SimpleNamespace(contents=[SimpleNamespace(blob=b64encode(page).decode())])


def reply_of(**held: Any) -> PackReply:
    return PackReply(TOOL, {"structuredContent": held, "_meta": {"onetool": {"form": 1}}})


async def value_of(reply: PackReply, *pages: bytes) -> Any:
    client: Any = Pages(*pages)
    await reply.fetch(client, Redactor())
    return await reply.value()


async def test_a_value_comes_with_its_types() -> None:
    assert b"\x00" == await value_of(reply_of(value='{"$ot":"bytes","v":"AA=="}'))


@pytest.mark.parametrize("value", [None, 3, "", "{", '{"$ot":"evil","v":1}', '{"$ot":"int","v":"1e9"}', "[" * 5000])
async def test_a_value_that_cannot_be_read_is_a_failure_of_the_tool(value: Any) -> None:
    with pytest.raises(ToolFailed, match="a value that cannot be read"):
        await value_of(reply_of(value=value))


async def test_a_stored_value_is_read_page_by_page() -> None:
    client: Any = Pages(b'["a",', b'"b"]')
    reply = reply_of(stored={"handle": "h", "bytes": 9, "form": "tagged"})
    await reply.fetch(client, Redactor())
    assert ["a", "b"] == await reply.value()
    assert ["ot://result/h/0", "ot://result/h/5"] == client.asked


@pytest.mark.parametrize(
    ("size", "pages"),
    [(9, [b'["a",']), (9, [b'["a"]' * 3]), (-1, []), ("9", []), (1 << 31, []), (None, []), (9, [])],
)
async def test_a_stored_value_of_another_size_than_was_said_is_unknown(size: Any, pages: list[bytes]) -> None:
    with pytest.raises(ServerUnavailable, match="its large value could not be read") as raised:
        await value_of(reply_of(stored={"handle": "h", "bytes": size, "form": "tagged"}), *pages)
    assert raised.value.unknown


async def test_what_is_too_large_for_a_program_is_handed_on_to_be_stored() -> None:
    stored = {"handle": "h", "bytes": 4, "form": "text"}
    found = await value_of(reply_of(stored=stored, too_large="9 bytes"), b"text")
    assert isinstance(found, CopiedResult)
    with found.file as file:
        assert ("text", "9 bytes", b"text") == (found.form, found.size, file.read())


async def test_a_value_of_very_many_parts_is_not_read() -> None:
    data = b"[" + b"1," * 1_000_001 + b"1]"
    found = await value_of(reply_of(stored={"handle": "h", "bytes": len(data), "form": "tagged"}), data)
    assert isinstance(found, Unread)


@pytest.mark.parametrize("failure", [{"error": "ToolFailed"}, {"error": 1}, {"a": "b"}])
async def test_a_failure_is_an_error_whatever_it_says(failure: Any) -> None:
    with pytest.raises(ToolError):
        await value_of(reply_of(failure=failure, value="1"))


@pytest.mark.parametrize("held", [None, [], "x", {"printed": 3, "value": "1"}])
async def test_what_is_no_answer_of_a_pack_prints_nothing(held: Any) -> None:
    reply = PackReply(TOOL, {"structuredContent": held, "_meta": {"onetool": {"form": 1, "revision": None}}})
    assert ("", "") == (reply.printed, reply.revision)


@pytest.mark.parametrize("message", [None, "", "running", "[1]", '"x"', "{}"])
def test_a_sign_of_life_is_no_progress(message: str | None) -> None:
    assert progress_of(message) is None


def test_progress_has_numbers_and_a_text() -> None:
    assert {"done": 1, "total": None, "message": ""} == progress_of('{"done":1,"total":"x","message":[2]}')


@pytest.mark.parametrize(("begun", "unknown"), [(False, False), (True, True), (None, True)])
def test_a_server_that_ends_says_whether_the_call_was_begun(begun: Any, unknown: bool) -> None:
    told = {"error": "ServerEnding"} | ({} if begun is None else {"begun": begun})
    found = ending({"_meta": {"onetool": told}}, "weather")
    assert found
    assert unknown == found.unknown
    assert ending({"_meta": {"onetool": {"error": "ToolFailed"}}}, "weather") is None
