"""onetool init --from: shown first, asked for, written where it belongs."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from cli import small_server
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


# ---------------------------------------------------------------- names, starts, and servers of one directory


def small(*more: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [small_server.FILE, *more]}


def claude(onetool: OneTool, servers: dict[str, Any], **more: Any) -> Path:
    return write(onetool.home / ".claude.json", json.dumps({"mcpServers": servers, **more}))


def test_a_server_named_like_a_pack_gets_another_name_and_its_rules_follow(onetool: OneTool) -> None:
    claude(onetool, {"git": small(), "time": small("1")})
    rules = {"permissions": {"allow": ["mcp__git__echo"], "deny": ["mcp__time"]}}
    write(onetool.home / ".claude" / "settings.json", json.dumps(rules))
    ended = onetool("init", "--from", "claude-code", "--name", "time=clock", "--yes", "--no-connect")
    because = "called 'git_server' here: 'git' is a bundled pack already; choose another with --name git=NAME"
    assert f"    note: {because}\n" in ended.out
    written = yaml.safe_load((onetool.user / "onetool.yaml").read_text())
    assert list(written["servers"]) == ["git_server", "clock"]
    assert written["policy"] == {"allow": ["git_server.echo"], "deny": ["clock.*"]}


def test_a_name_that_nobody_has_or_no_program_can_write_is_refused(onetool: OneTool) -> None:
    claude(onetool, {"git": small()})
    for wrong in ("svn=vcs", "git=my vcs", "git", "=vcs"):
        ended = onetool("init", "--from", "claude-code", "--name", wrong, "--yes")
        assert (ended.code, "--name" in ended.err) == (2, True)
    assert onetool("init", "--name", "git=vcs").code == 2
    assert not (onetool.user / "onetool.yaml").exists()


def test_rules_that_are_in_the_file_already_are_not_shown_as_new(onetool: OneTool) -> None:
    fill(onetool)
    first = onetool("init", "--from", "claude-code", "--yes", "--no-connect")
    again = onetool("init", "--from", "claude-code", "--yes", "--no-connect")
    assert "policy allow: github.search" in first.out
    assert "policy" not in again.out
    assert "github  from claude-code  left out: it is in your configuration already, as github" in again.out


def test_what_does_not_start_stays_in_the_client_and_the_rest_is_measured(onetool: OneTool) -> None:
    file = write(
        onetool.home / ".config" / "Code" / "User" / "mcp.json",
        json.dumps({"servers": {"db": {**small(), "env": {"PGPASSWORD": "${input:pg-password}"}}, "ok": small("1")}}),
    )
    ended = onetool("init", "--from", "vscode", "--connect", "--yes")
    assert ended.code == 0, ended.err
    secrets = onetool.user / "secrets.yaml"
    stays = (
        f"db stays in VS Code: it needs PG_PASSWORD; add it to {secrets} and run 'onetool connect vscode --take-out'"
    )
    assert ended.out.count(stays) == 1
    assert "starting db, ok ..." in ended.err
    left = json.loads(file.read_text())["servers"]
    assert list(left) == ["db", "onetool"]
    assert re.search(r"^ok +2 +\d+$", ended.out, re.MULTILINE)
    assert re.search(r"^vscode before +2 +2\+ +\d+\+$", ended.out, re.MULTILINE)
    write(secrets, "PG_PASSWORD: hunter2-hunter2\n").chmod(0o600)
    onetool("connect", "vscode", "--take-out", "--yes")
    assert list(json.loads(file.read_text())["servers"]) == ["onetool"]


def test_a_server_that_worked_once_is_started_again_before_it_is_taken_out(onetool: OneTool, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.symlink_to(small_server.FILE)
    file = claude(onetool, {"a": {"command": sys.executable, "args": [str(script)]}})
    told = json.loads(onetool("init", "--from", "claude-code", "--yes", "--json").out)
    assert [(row["server"], row["state"], row["tools"]) for row in told["started"]] == [("a", "started", 2)]
    script.unlink()
    told = json.loads(onetool("connect", "claude-code", "--take-out", "--yes", "--json").out)
    assert told["clients"][0]["taken_out"] == []
    assert "once it starts here, run 'onetool connect claude-code --take-out'" in told["clients"][0]["stays"]["a"]
    assert "a" in json.loads(file.read_text())["mcpServers"]


def test_a_private_server_of_a_project_stays_private_and_in_its_directory(onetool: OneTool) -> None:
    private = {"mcpServers": {"fs": small("."), "docs": small("2")}, "allowedTools": []}
    file = claude(onetool, {"docs": small("1")}, projects={str(onetool.cwd): private, "/else": private})
    before = file.read_bytes()
    ended = onetool("init", "--from", "claude-code", "--connect", "--yes")
    assert "+ fs  from claude-code, for this directory  to ~/.onetool" in ended.out
    assert not onetool.project.exists()
    written = yaml.safe_load((onetool.user / "onetool.yaml").read_text())["servers"]
    assert list(written) == ["docs", "fs", "docs_claude_code"]
    where = str(onetool.cwd)
    assert written["fs"] == {"command": sys.executable, "args": [small_server.FILE, where], "only_in": where}
    left = json.loads(file.read_text())
    assert list(left["mcpServers"]) == ["onetool"]
    assert left["projects"] == {where: {**private, "mcpServers": {}}, "/else": private}
    here = onetool("check")
    assert "started: " in here.out and "fs" in here.out and "trust" not in here.out
    assert [row["name"] for row in servers(onetool)] == ["docs", "docs_claude_code", "fs"]
    below = onetool.cwd / "below"
    below.mkdir()
    assert len(servers(replace(onetool, cwd=below))) == 3
    elsewhere = replace(onetool, cwd=onetool.home)
    assert [row["name"] for row in servers(elsewhere)] == ["docs"]
    assert f"fs is not used here: only in {where}" in elsewhere("servers").err
    changed = json.loads(file.read_text()) | {"numStartups": 2}
    file.write_text(json.dumps(changed))
    onetool("disconnect", "claude-code", "--yes")
    assert json.loads(file.read_text()) == {**json.loads(before), "numStartups": 2}


def test_what_is_written_for_a_repository_is_what_was_found(onetool: OneTool) -> None:
    write(onetool.cwd / ".mcp.json", json.dumps({"mcpServers": {"team": small()}}))
    onetool("init", "--from", "claude-code", "--yes")
    assert {file.name for file in onetool.project.iterdir()} == {"onetool.yaml", ".gitignore"}
    text = (onetool.project / "onetool.yaml").read_text()
    assert len(text.splitlines()) < 10
    assert list(yaml.safe_load(text)) == ["version", "servers"]
