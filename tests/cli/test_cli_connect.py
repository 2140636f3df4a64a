"""onetool connect and disconnect: shown first, asked for, written once, and undone."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from cli import small_server
from cli.command import OneTool
from cli.test_cli_servers import SERVER
from config.desk import write
from ot.config.clients.known_clients import CLIENTS

TOKEN = "ghp_abcdefghijklmnopqrstuvwx0123"
LAUNCHER = str(Path(sys.executable).with_name("onetool"))
MINE = f'"mine": {{"command": "{sys.executable}", "args": ["{small_server.FILE}", "--mine"]}},'
CURSOR = f"""{{
  // what I use
  "mcpServers": {{
    "time": {{"command": "{sys.executable}", "args": ["{small_server.FILE}"], "env": {{"GITHUB_TOKEN": "{TOKEN}"}}}},
    {MINE}
  }}
}}
"""


def cursor_file(onetool: OneTool) -> Path:
    return onetool.home / ".cursor" / "mcp.json"


def test_without_a_terminal_the_difference_is_shown_and_nothing_written(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    ended = onetool("connect", "cursor")
    assert ended.code == 4
    assert f'+      "command": "{LAUNCHER}",' in ended.out
    assert "add --yes to write it" in ended.err
    assert file.read_text() == CURSOR
    assert not onetool.user.exists()


def test_no_secret_of_a_neighbour_is_shown(onetool: OneTool) -> None:
    write(cursor_file(onetool), CURSOR.replace(MINE, ""))
    ended = onetool("connect", "cursor", "--dry-run")
    assert "********" in ended.out
    assert TOKEN not in ended.out + ended.err


def test_a_file_of_one_long_line_is_not_shown_whole(onetool: OneTool) -> None:
    long = json.dumps({"history": ["x" * 500], "apiKey": "abcdefgh", "mcpServers": {"a": {"command": "b"}}})
    write(onetool.home / ".claude.json", long)
    ended = onetool("connect", "claude-code", "--yes")
    entry = f'{{"type": "stdio", "command": "{LAUNCHER}", "args": ["serve", "--shared"], "alwaysLoad": true}}'
    assert f"+onetool: {entry}" in ended.out
    assert "xxx" not in ended.out
    assert "abcdefgh" not in ended.out


def test_a_client_shares_a_server_unless_it_is_to_have_its_own(onetool: OneTool) -> None:
    file = cursor_file(onetool)
    shared = onetool("connect", "cursor", "--yes")
    assert _servers(file)["onetool"]["args"] == ["serve", "--shared"]
    assert "your clients share one server" in shared.err
    assert "sandbox that a client puts around its own processes; --alone" in shared.err
    assert "share" not in onetool("connect", "cursor", "--yes").err
    alone = onetool("connect", "cursor", "--alone", "--yes")
    assert _servers(file)["onetool"]["args"] == ["serve"]
    assert '-      "args": ["serve", "--shared"]' in alone.out
    assert "share" not in alone.err


def test_what_sharing_means_is_said_before_anything_is_written(onetool: OneTool) -> None:
    ended = onetool("connect", "cursor")
    assert ended.err.index("your clients share one server") < ended.err.index("add --yes to write it")
    assert json.loads(onetool("connect", "cursor", "--json", "--dry-run").out)["clients"][0]["changed"]


def test_a_dry_run_writes_nothing(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    ended = onetool("connect", "cursor", "--dry-run")
    assert ended.code == 0
    assert f"Cursor: nothing was written to {file}." in ended.out
    assert file.read_text() == CURSOR


def test_what_was_connected_is_disconnected_again(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    connected = onetool("connect", "cursor", "--yes")
    assert connected.code == 0, connected.err
    assert f"Cursor: connected in {file}; backup: {onetool.user / 'backups'}/cursor-" in connected.out
    assert file.read_text().replace(_entry("    ") + ",\n", "") == CURSOR
    assert "Cursor: nothing to do" in onetool("connect", "cursor", "--yes").out
    assert onetool("disconnect", "cursor", "--yes").code == 0
    assert file.read_text() == CURSOR
    again = onetool("disconnect", "cursor", "--yes")
    assert (again.code, again.out) == (0, f"Cursor: nothing to do in {file}.\n")


def _entry(indent: str) -> str:
    lines = ('"onetool": {', f'  "command": "{LAUNCHER}",', '  "args": ["serve", "--shared"]', "}")
    return "\n".join(indent + line for line in lines)


def test_a_malformed_file_keeps_no_other_client_from_being_connected(onetool: OneTool) -> None:
    broken = write(onetool.home / ".codex" / "config.toml", "a = 1\nb = \n")
    ended = onetool("connect", "codex", "cursor", "--yes")
    assert ended.code == 1
    assert f"onetool: {broken}:2: it is malformed" in ended.err
    assert broken.read_text() == "a = 1\nb = \n"
    assert cursor_file(onetool).exists()


@pytest.mark.parametrize("name", CLIENTS)
def test_the_block_to_paste_is_what_would_be_written(onetool: OneTool, name: str) -> None:
    printed = onetool("connect", name, "--print")
    (shown,) = json.loads(onetool("connect", name, "--print", "--json").out)
    assert shown["block"] == printed.out
    assert not Path(shown["file"]).exists()
    onetool("connect", name, "--yes")
    assert Path(shown["file"]).read_text() == printed.out
    read: Any = (tomllib if shown["file"].endswith(".toml") else json).loads(printed.out)
    ((entries,),) = (list(read.values()),)
    assert entries["onetool"]["command"] == LAUNCHER


def test_an_install_link_contains_the_entry(onetool: OneTool) -> None:
    cursor, vscode = onetool("connect", "cursor", "vscode", "--link", "--name", "tools").out.splitlines()
    query = parse_qs(urlsplit(cursor).query)
    assert cursor.startswith("cursor://anysphere.cursor-deeplink/mcp/install?")
    assert query["name"] == ["tools"]
    assert json.loads(base64.b64decode(query["config"][0])) == {"command": LAUNCHER, "args": ["serve", "--shared"]}
    assert json.loads(unquote(vscode.removeprefix("vscode:mcp/install?"))) == {
        "name": "tools", "type": "stdio", "command": LAUNCHER, "args": ["serve", "--shared"]
    }  # fmt: skip
    without = onetool("connect", "zed", "--link")
    assert (without.code, without.err) == (2, "onetool: zed has no install link: use onetool connect, or --print\n")


def test_all_means_those_that_are_here(onetool: OneTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(onetool.home))
    assert onetool("connect", "--all", "--yes").code == 3
    cursor_file(onetool).parent.mkdir()
    write(onetool.home / ".gemini" / "settings.json", "{}")
    told = json.loads(onetool("connect", "--all", "--yes", "--json").out)
    assert [(each["client"], each["done"]) for each in told["clients"]] == [
        ("cursor", "connected"), ("gemini-cli", "connected")
    ]  # fmt: skip


def test_a_configuration_that_cannot_be_used_keeps_nobody_from_connecting(onetool: OneTool) -> None:
    write(onetool.project / "onetool.yaml", "limits: nonsense\n")
    ended = onetool("connect", "cursor", "--yes")
    assert ended.code == 0, ended.err
    assert cursor_file(onetool).exists()


def test_a_client_has_to_be_named_and_known(onetool: OneTool) -> None:
    (onetool.home / ".cursor").mkdir()
    unnamed = onetool("connect")
    assert unnamed.code == 2
    assert "name a client, or --all; found here: cursor" in unnamed.err
    assert "did you mean cursor?" in onetool("disconnect", "curser").err


def test_the_directory_to_work_in_can_be_given(onetool: OneTool) -> None:
    hint = "Claude Desktop has no project directory: choose one with --cwd."
    assert hint in onetool("connect", "claude-desktop", "--yes").out
    assert hint not in onetool("connect", "claude-desktop", "--cwd", ".", "--yes").out
    file = CLIENTS["claude-desktop"]
    (written,) = onetool.home.rglob(next(iter(file.files)).rpartition("/")[2])
    assert json.loads(written.read_text())["mcpServers"]["onetool"]["env"] == {"OT_CWD": str(onetool.cwd)}
    assert onetool("connect", "zed", "--cwd", "gone", "--yes").code == 2


# ---------------------------------------------------------------- servers that OneTool holds


def test_servers_that_onetool_holds_are_taken_out_only_when_asked_for(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    taken = onetool("init", "--from", "cursor", "--yes")
    assert "Next: onetool check, then onetool connect cursor --take-out" in taken.out
    assert file.read_text() == CURSOR
    left = onetool("connect", "cursor", "--yes")
    assert "OneTool also has 2 of the servers in Cursor: time, mine. To remove them there, add --take-out." in left.err
    assert list(_servers(file)) == ["time", "mine", "onetool"]
    onetool("connect", "cursor", "--take-out", "--yes")
    assert list(_servers(file)) == ["onetool"]
    onetool("disconnect", "cursor", "--yes")
    assert file.read_text() == CURSOR


def test_a_server_that_differs_is_not_one_that_onetool_holds(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    onetool("init", "--from", "cursor", "--yes")
    onetool("disable", "mine")
    write(file, CURSOR.replace('small_server.py"]', 'small_server.py", "2"]'))
    onetool("connect", "cursor", "--take-out", "--yes")
    assert list(_servers(file)) == ["time", "mine", "onetool"]


def test_init_connects_what_it_took_over_when_asked_for(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    told = json.loads(onetool("init", "--from", "cursor", "--connect", "--yes", "--json").out)
    assert told["connected"][0]["taken_out"] == ["time", "mine"]
    assert list(_servers(file)) == ["onetool"]
    assert list(yaml.safe_load((onetool.user / "onetool.yaml").read_text())["servers"]) == ["time_server", "mine"]
    assert [(row["server"], row["tools"]) for row in told["started"]] == [("time_server", 2), ("mine", 2)]


def _servers(file: Path) -> dict[str, Any]:
    from ot.config.clients.client_reading import read_json

    return read_json(file.read_bytes())["mcpServers"]


def test_at_a_terminal_each_step_is_asked_for(onetool: OneTool) -> None:
    file = write(cursor_file(onetool), CURSOR)
    questions = _at_a_terminal(onetool, "yyy\n", "init", "--from", "cursor")
    assert "Write this? [y/N]" in questions
    assert "Connect cursor to OneTool, and take the servers that start here out of there? [y/N]" in questions
    assert list(_servers(file)) == ["onetool"]
    onetool("disconnect", "cursor", "--yes")
    questions = _at_a_terminal(onetool, "yn\n", "connect", "cursor")
    assert "OneTool also has 2 of the servers in Cursor: time, mine. Take them out of Cursor? [y/N]" in questions
    assert "Nothing was written." in questions
    assert file.read_text() == CURSOR


def _at_a_terminal(onetool: OneTool, answers: str, *arguments: str) -> str:
    """Return what is asked and told when somebody at a terminal gives *answers*, a letter each."""
    mine, its = pty.openpty()
    try:
        os.write(mine, "".join(f"{letter}\n" for letter in answers.strip()).encode())
        ended = subprocess.run(
            [LAUNCHER, *arguments], stdin=its, capture_output=True, text=True, timeout=60, check=False, cwd=onetool.cwd
        )
    finally:
        os.close(mine)
        os.close(its)
    return ended.stderr


# ---------------------------------------------------------------- what it costs


def test_the_costs_say_what_is_counted_and_what_is_not(onetool: OneTool, tmp_path: Path) -> None:
    server = write(tmp_path / "small_server.py", SERVER)
    entry = {"command": sys.executable, "args": [str(server)]}
    write(cursor_file(onetool), json.dumps({"mcpServers": {"echo": entry, "odd": {"command": "odd"}}}))
    onetool("add", "echo", sys.executable, str(server))
    told = json.loads(onetool("connect", "cursor", "--take-out", "--yes", "--json").out)["clients"][0]
    before, after = told["before"], told["after"]
    assert (before["servers"], before["unknown"]) == (2, ["odd"])
    assert before["tools"] == 1
    assert 20 < before["estimated_tokens"] < 300
    assert (after["servers"], after["tools"], after["unknown"]) == (2, 1, ["odd"])
    shown = onetool("connect", "cursor", "--yes")
    assert "cursor after" in shown.out
    assert "Tokens are estimated at 4 characters each" in shown.err
    assert 'OneTool has not listed their tools yet: "odd".' in shown.err
