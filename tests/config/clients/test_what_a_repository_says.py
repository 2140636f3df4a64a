"""What the files of other clients in a repository say is no word of the user's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from config.desk import write
from ot.config.clients.known_clients import CLIENTS
from ot.config.clients.server_entry import FoundServer, Scope, Surroundings
from ot.config.clients.take_over import Configured, Plan, plan_of


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Surroundings(tmp_path / "home", cwd, {"GH_KEY": "from-the-environment"}, "linux")


def plan(around: Surroundings, known: tuple[str, ...] = (), *, use_global: bool = False) -> Plan:
    here: dict[Scope, Configured] = {"user": Configured({name: {} for name in known})}
    return plan_of(CLIENTS, around, here if use_global else {**here, "project": Configured()})


def cursor(around: Surroundings, entry: dict[str, Any]) -> FoundServer:
    """Return what becomes of a server that the repository's file for Cursor names."""
    write(around.cwd / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"db": entry}}))
    return next(server for server in plan(around).servers if server.place.repository)


@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
def test_what_it_allows_is_left_out_and_what_it_denies_goes_to_the_project(around: Surroundings, file: str) -> None:
    said = {"allow": ["mcp__github"], "ask": ["mcp__github__x"], "deny": ["mcp__github__drop"]}
    write(around.cwd / ".claude" / file, json.dumps({"permissions": said}))
    found = plan(around, ("github",))
    assert (found.rules, found.denied) == ((), ("github.drop",))
    assert "left out: allow github.*, ask github.x" in found.problems[0]
    assert plan(around, ("github",), use_global=True).denied == ()


def test_what_it_says_needs_no_question_is_not_the_users_word(around: Surroundings) -> None:
    cursor(around, {"command": "x", "autoApprove": ["query"], "alwaysAllow": ["drop"]})
    assert plan(around).rules == ()


def test_an_empty_name_among_the_approved_tools_is_passed_over(around: Surroundings) -> None:
    entry = {"command": "x", "alwaysAllow": ["", "query"]}
    write(around.home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"db": entry}}))
    assert plan(around).rules == (("allow", "db.query"),)


def test_it_switches_off_its_own_servers_and_none_of_the_users(around: Surroundings) -> None:
    write(around.home / ".claude.json", '{"mcpServers": {"mine": {"command": "m"}}}')
    write(around.cwd / ".mcp.json", '{"mcpServers": {"its": {"command": "i"}}, "disabledMcpServers": ["mine", "its"]}')
    found = {server.name: server.entry.get("enabled", True) for server in plan(around).servers}
    assert found == {"mine": True, "its": False}


def test_its_server_does_not_go_into_the_users_configuration(around: Surroundings) -> None:
    cursor(around, {"command": "x"})
    assert plan(around, use_global=True).taken == ()


def test_its_server_never_stands_in_for_the_users_of_the_same_name(around: Surroundings) -> None:
    write(around.cwd / ".mcp.json", '{"mcpServers": {"hub": {"command": "h", "env": {"LD_PRELOAD": "./x.so"}}}}')
    write(around.home / ".cursor" / "mcp.json", '{"mcpServers": {"hub": {"command": "h"}}}')
    (taken,) = plan(around).taken
    assert (taken.client, taken.place.repository) == ("cursor", False)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "x", "env": {"T": "${GH_KEY}"}},
        {"command": "x", "env": {"T": "${env:GH_KEY}"}},
        {"url": "https://h/", "headers": {"T": "${GH_KEY}"}},
    ],
)
def test_nothing_is_copied_from_the_environment_for_it(around: Surroundings, entry: dict[str, Any]) -> None:
    server = cursor(around, entry)
    assert (server.secrets, server.skipped) == ({}, "")
    assert "${GH_KEY}" in json.dumps(server.entry)
    assert any("is not taken from your environment" in note for note in server.notes)


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://h/?t=${GH_KEY}"},
        {"command": "sh", "args": ["-c", "${GH_KEY}"]},
        {"command": "${GH_KEY}"},
        {"command": "x", "args": ["${userHome}/x"]},
    ],
)
def test_a_server_whose_command_or_address_would_take_a_value_is_left_out(
    around: Surroundings, entry: dict[str, Any]
) -> None:
    server = cursor(around, entry)
    assert "would take a secret" in server.skipped
    assert server.secrets == {}


@pytest.mark.parametrize(
    "name", ["~/.aws/credentials", "../outside.env", "linked.env", "folder/x.env", "pipe", "/dev/zero"]
)
def test_its_env_file_is_one_of_its_own(around: Surroundings, name: str) -> None:
    write(around.home / ".aws" / "credentials", "KEY=stolen\n")
    write(around.cwd.parent / "outside.env", "KEY=stolen\n")
    write(around.cwd.parent / "there" / "x.env", "KEY=stolen\n")
    (around.cwd / "linked.env").symlink_to(around.cwd.parent / "outside.env")
    (around.cwd / "folder").symlink_to(around.cwd.parent / "there")
    os.mkfifo(around.cwd / "pipe")
    server = cursor(around, {"command": "x", "envFile": name})
    assert (server.entry, server.secrets) == ({"command": "x", "cwd": "${workspace}"}, {})
    assert any("cannot be read and was left out" in note for note in server.notes)


def test_an_env_file_inside_the_project_is_read(around: Surroundings) -> None:
    write(around.cwd / ".env", "A=one\nNODE_OPTIONS=--require ./x.js\n")
    server = cursor(around, {"command": "x", "envFile": "${workspaceFolder}/.env"})
    # What makes a program run something else is not hidden among the secrets.
    assert server.entry["env"] == {"A": "${A}", "NODE_OPTIONS": "--require ./x.js"}
    assert server.secrets == {"A": "one"}


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_the_users_own_env_file_is_a_regular_file_too(around: Surroundings, name: str) -> None:
    os.mkfifo(around.cwd / "pipe")
    entry = {"command": "x", "envFile": name}
    write(around.home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"db": entry}}))
    (server,) = plan(around).servers
    assert any("cannot be read and was left out" in note for note in server.notes)


@pytest.mark.parametrize("name", ["$(touch x)_KEY", "A B_KEY", "ÄPI_KEY", "", "1KEY"])
def test_a_variable_that_no_variable_can_be_called_is_left_out(around: Surroundings, name: str) -> None:
    server = cursor(around, {"command": "x", "env": {name: "abcdefgh", "OK_KEY": "abcdefgh"}})
    assert server.entry["env"] == {"OK_KEY": "${OK_KEY}"}
    assert server.secrets == {"OK_KEY": "abcdefgh"}
    assert any("not a valid variable name" in note for note in server.notes)


@pytest.mark.parametrize("link", [".cursor", ".cursor/mcp.json"])
def test_a_file_behind_a_link_is_not_read(around: Surroundings, link: str) -> None:
    write(around.home / "private" / "mcp.json", '{"mcpServers": {"mine": {"command": "x"}}}')
    (around.cwd / link).parent.mkdir(exist_ok=True)
    (around.cwd / link).symlink_to(around.home / "private" / ("mcp.json" if "mcp" in link else ""))
    found = plan(around)
    assert found.servers == ()
    assert ".cursor/mcp.json" in found.problems[0]


def test_in_the_home_directory_such_files_are_the_users_own(around: Surroundings) -> None:
    here = Surroundings(around.cwd, around.cwd, {}, "linux")
    write(here.cwd / ".mcp.json", '{"mcpServers": {"mine": {"command": "x"}}}')
    (server,) = plan_of(["claude-code"], here, {"user": Configured()}).taken
    assert (server.place.scope, server.place.repository) == ("user", False)
