"""onetool init --from: shown first, asked for, written where it belongs."""

from __future__ import annotations

import json
from typing import Any

import yaml

from cli.command import OneTool
from config.desk import write

TOKEN = "ghp_abcdefghijklmnopqrstuvwx0123"


def fill(onetool: OneTool) -> None:
    own = {
        "github": {"url": "https://h/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}},
        "onetool": {"command": "onetool"},
    }
    write(onetool.home / ".claude.json", json.dumps({"mcpServers": own}))
    rules = {"permissions": {"allow": ["mcp__github__search"], "deny": ["mcp__github__drop"]}}
    write(onetool.home / ".claude" / "settings.json", json.dumps(rules))
    write(onetool.cwd / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"db": {"command": "sh"}}}))


def test_without_a_terminal_nothing_is_written_before_yes(onetool: OneTool) -> None:
    fill(onetool)
    ended = onetool("init", "--from", "all")
    assert ended.code == 4
    assert "+ github  from claude-code  to ~/.onetool\n    url: https://h/mcp\n" in ended.out
    assert "- onetool  from claude-code  left out: it is OneTool itself" in ended.out
    assert "add --yes to write it" in ended.err
    assert not (onetool.user / "onetool.yaml").exists()
    assert not onetool.project.exists()


def test_servers_go_where_they_came_from_and_secrets_apart(onetool: OneTool) -> None:
    fill(onetool)
    ended = onetool("init", "--from", "claude-code", "--from", "cursor", "--yes")
    assert ended.code == 0, ended.err
    assert TOKEN not in ended.out + ended.err
    user = (onetool.user / "onetool.yaml").read_text()
    assert TOKEN not in user
    assert len(user.splitlines()) < 15
    assert yaml.safe_load(user) == {
        "version": 1,
        "servers": {"github": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${GITHUB_AUTHORIZATION}"}}},
        "policy": {"allow": ["github.search"], "deny": ["github.drop"]},
    }
    assert (onetool.user / "secrets.yaml").stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load((onetool.project / "onetool.yaml").read_text())["servers"] == {
        "db": {"command": "sh", "cwd": "${workspace}"}
    }
    assert "What came with the repository stays untrusted until you run onetool trust." in ended.out
    assert "The project is not trusted and is not used: look at it, then run onetool trust." in ended.out
    assert [row["name"] for row in servers(onetool)] == ["github"]
    assert onetool("trust", "--yes").code == 0
    assert [(row["name"], row["problem"]) for row in servers(onetool)] == [("db", ""), ("github", "")]


def servers(onetool: OneTool) -> list[dict[str, Any]]:
    return sorted(json.loads(onetool("servers", "--json").out), key=lambda row: row["name"])


def test_a_second_time_changes_nothing(onetool: OneTool) -> None:
    fill(onetool)
    onetool("init", "--from", "all", "--yes")
    before = (onetool.user / "onetool.yaml").read_text()
    ended = onetool("init", "--from", "all", "--yes")
    assert ended.code == 0
    assert "in your configuration already" in ended.out
    assert (onetool.user / "onetool.yaml").read_text() == before


def test_global_takes_what_is_the_users_and_nothing_of_the_repository(onetool: OneTool) -> None:
    fill(onetool)
    ended = onetool("init", "--from", "all", "--global", "--yes", "--json")
    told = json.loads(ended.out)
    assert told["written"] == [str(onetool.user / "onetool.yaml")]
    assert [server["name"] for server in told["servers"] if not server["skipped"]] == ["github"]
    (db,) = [server for server in told["servers"] if server["name"] == "db"]
    assert db["skipped"] == "it is the repository's, which does not go into your own configuration"
    assert not onetool.project.exists()


def test_what_the_user_said_here_stays_said(onetool: OneTool) -> None:
    fill(onetool)
    onetool("deny", "github.search")
    onetool("init", "--from", "claude-code", "--yes")
    policy = yaml.safe_load((onetool.user / "onetool.yaml").read_text())["policy"]
    assert "github.search" in policy["deny"]
    assert "github.search" not in policy.get("allow", [])


def test_nothing_found_ends_with_three_and_an_unknown_client_with_two(onetool: OneTool) -> None:
    ended = onetool("init", "--from", "zed", "--yes")
    assert (ended.code, ended.out) == (3, "No servers were found.\n")
    wrong = onetool("init", "--from", "cursr")
    assert wrong.code == 2
    assert "did you mean cursor?" in wrong.err
