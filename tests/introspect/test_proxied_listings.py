"""What the ot pack tells of proxied servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ot.servers.definitions import ServerDefinitions
from ot.servers.proxied_pack import UNASKED
from servers.proxied_desk import GITHUB, MERGE, SEARCH, app_with, github

pytestmark = pytest.mark.anyio


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
