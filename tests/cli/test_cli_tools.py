"""onetool list, search and show, and what a shell completes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command import OneTool
from ot.cli.exit_codes import BACKEND, NOT_FOUND
from ot.cli.terminal.completion import complete_pack_list, complete_packs, complete_servers, complete_tools
from run_app import BUNDLED

SERVER = """
from fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("desk")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def find_ticket(words: str, limit: int = 10) -> list[str]:
    "Find tickets of the help desk by their words."
    return [words]


@server.tool(annotations=ToolAnnotations(destructiveHint=True))
def close_ticket(number: int) -> str:
    "Close a ticket for good."
    return "closed"


open("started", "a").write("x")
server.run(show_banner=False)
"""
PACK = '''\
# /// script
# requires-python = ">=3.12"
# ///
"""Weather."""
pack = "weather"


def forecast(*, city: str) -> str:
    """Tell tomorrow's weather."""
    return city
'''


@pytest.fixture
def started(onetool: OneTool, tmp_path: Path) -> Path:
    """A server in the configuration, which writes this file when it starts; a pack of the user's beside it."""
    (tmp_path / "desk.py").write_text(SERVER)
    place = tmp_path / "at"
    place.mkdir()
    (onetool.user / "tools" / "weather").mkdir(parents=True)
    (onetool.user / "tools" / "weather" / "weather_tools.py").write_text(PACK)
    desk = {"command": sys.executable, "args": [str(tmp_path / "desk.py")], "cwd": str(place)}
    config = {"servers": {"desk": desk}, "policy": {"ask": ["file.w*"]}, "aliases": {"say": "weather.forecast"}}
    (onetool.user / "onetool.yaml").write_text(json.dumps(config))
    return place / "started"


def listed(onetool: OneTool, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a list by name."""
    ended = onetool("list", *arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    return {row["name"]: row for row in json.loads(ended.out)}


def test_packs_are_listed_with_their_source_and_no_server_is_started(onetool: OneTool, started: Path) -> None:
    rows = listed(onetool)
    others = {"desk": "server desk", "guide": "installed", "weather": "user"}
    assert {name: row["from"] for name, row in rows.items()} == dict.fromkeys(BUNDLED, "bundled") | others
    assert (rows["desk"]["tools"], rows["weather"]["tools"], rows["file"]["problem"]) == (None, 1, "")
    out = onetool("list").out.splitlines()
    assert "desk       server desk  not asked yet" in out
    assert "weather    user         1 tool" in out
    ended = onetool("list", "desk")
    assert (ended.code, ended.out) == (BACKEND, "")
    assert "onetool show desk starts its server and asks" in ended.err
    assert not started.exists()


def test_a_server_is_asked_by_show_and_its_tools_are_listed_without_it_from_then_on(
    onetool: OneTool, started: Path
) -> None:
    ended = onetool("show", "desk.close_ticket")
    assert (ended.code, started.read_text()) == (0, "x")
    assert "Close a ticket for good." in ended.out
    assert "desk.close_ticket(number: int)" in ended.out
    facts = "Source: proxy:desk\ndestructive: yes\nPolicy: ask (it says that it is destructive)\n"
    assert facts in ended.out
    shown = json.loads(onetool("show", "desk.find_ticket", "--json").out)
    assert (shown["read_only"], shown["destructive"]) == (True, False)
    assert shown["policy"] == {"action": "allow", "why": "it says that it is read-only"}
    assert shown["return_type"].startswith("list")
    assert {"desk.close_ticket", "desk.find_ticket"} <= set(listed(onetool, "desk"))
    found = json.loads(onetool("search", "close", "a", "ticket", "--json").out)
    assert found["tools"][0]["name"] == "desk.close_ticket"
    assert complete_tools("desk.f") == ["desk.find_ticket"]
    assert started.read_text() == "x"


def test_a_server_that_does_not_start_ends_with_five(onetool: OneTool) -> None:
    onetool("add", "--no-connect", "gone", "/no/such-program")
    ended = onetool("show", "gone")
    assert (ended.code, ended.out) == (BACKEND, "")
    assert "/no/such-program" in ended.err


def test_tokens_are_those_of_definitions_listed_one_by_one(onetool: OneTool, started: Path) -> None:
    assert "tokens" not in listed(onetool)["file"]
    tools, packs = listed(onetool, "file", "--tokens"), listed(onetool, "--tokens")
    assert packs["file"]["tokens"] == sum(row["tokens"] for row in tools.values()) > 500
    assert packs["desk"]["tokens"] is None
    ended = onetool("list", "file", "--tokens")
    assert f"{tools['file.read']['tokens']} tokens  Read the text of a file" in ended.out
    assert f"about {packs['file']['tokens']:,} tokens of every request (estimate)" in ended.err


def test_a_broken_pack_is_listed_with_what_is_wrong(onetool: OneTool, started: Path) -> None:
    (onetool.user / "tools" / "weather" / "weather_tools.py").write_text("def broken(:")
    row = listed(onetool)["weather"]
    assert (row["tools"], "invalid syntax" in row["problem"]) == (0, True)
    assert "  weather_tools.py" in onetool("list").out
    assert onetool("list", "weather").code == BACKEND


def test_a_project_that_is_not_trusted_is_told_of(onetool: OneTool) -> None:
    onetool.project.mkdir()
    (onetool.project / "onetool.yaml").write_text("version: 1\n")
    for command in (["list"], ["list", "--json"], ["search", "read", "file"]):
        ended = onetool(*command)
        assert (ended.code, "onetool trust" in ended.err) == (0, True)
        assert "onetool trust" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "fiel"], "there is no pack 'fiel', did you mean 'file'?"),
        (["show", "nosuch.tool"], "there is no pack 'nosuch'"),
        (["show", "file.raed"], "'raed' is not in pack 'file', did you mean 'read'?"),
        (["search", "zzgrmpf"], "nothing fits 'zzgrmpf': onetool list shows what there is"),
    ],
)
def test_what_does_not_exist_ends_with_three_and_a_hint(onetool: OneTool, arguments: list[str], words: str) -> None:
    ended = onetool(*arguments)
    assert (ended.code, ended.out, words in ended.err) == (NOT_FOUND, "", True)


def test_a_search_shows_signatures_and_says_what_was_not_searched(onetool: OneTool, started: Path) -> None:
    ended = onetool("search", "tomorrow", "weather")
    assert ended.code == 0
    assert ended.out.startswith("weather.forecast(city: str) -> str\n    Tell tomorrow's weather.\n")
    assert ended.err == "Not searched, because these servers were never asked what they offer: desk\n"


def test_a_tool_is_shown_with_the_pattern_that_decides_over_it(onetool: OneTool, started: Path) -> None:
    out = onetool("show", "file.write").out
    assert "Policy: ask (policy.ask: 'file.w*')" in out
    assert "Source: local" in out
    assert "Returns: " in out
    assert "Policy: allow (it says that it is read-only)" in onetool("show", "file.read()").out


def test_what_differs_for_members_of_groups_is_shown_and_checked(onetool: OneTool) -> None:
    onetool.user.mkdir(exist_ok=True)
    groups = {"staff": {"allow": ["file.write"]}, "interns": {"deny": ["file.*"]}, "others": {"ask": ["guide.*"]}}
    settings = {"policy": {"ask": ["file.w*"], "groups": groups}}
    (onetool.user / "onetool.yaml").write_text(json.dumps(settings))
    out = onetool("show", "file.write").out
    assert "Policy: ask (policy.ask: 'file.w*')\nFor members of staff: allow\n" in out
    assert "others" not in out
    assert json.loads(onetool("show", "file.read", "--json").out)["policy"]["groups"] == {"interns": "deny"}
    checked = json.loads(onetool("check", "--json").out)["policy"]
    assert checked["groups"]["interns"] == {"allow": [], "ask": [], "deny": ["file.*"]}
    assert "  ask: file.w*\n  members of staff: allow: file.write\n" in onetool("check").out


def test_a_pack_and_an_alias_can_be_shown(onetool: OneTool, started: Path) -> None:
    assert "- weather.forecast(city: str) -> str: Tell tomorrow's weather." in onetool("show", "weather").out
    assert json.loads(onetool("show", "weather", "--json").out)["tool_count"] == 1
    assert onetool("show", "say").out.startswith("# weather.forecast\n")


def test_names_are_completed_from_what_is_configured(
    onetool: OneTool, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(onetool.cwd)
    assert complete_packs("") == sorted([*BUNDLED, "desk", "weather"])
    assert complete_tools("we") == ["weather", "web"]
    assert complete_tools("weather.") == ["weather.forecast"]
    assert complete_pack_list("file,w") == ["file,weather", "file,web"]
    assert complete_pack_list("file,fi") == []
    assert complete_servers("d") == ["desk"]
    (onetool.user / "onetool.yaml").write_text("servers: [")
    assert complete_packs("") == []


def test_a_shell_asks_for_names_through_the_installed_command(onetool: OneTool, started: Path) -> None:
    line = "onetool show weather."
    words = {"_ONETOOL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert onetool.process(**words).out.split() == ["weather.forecast"]
