"""The files of other clients, as they write them, become servers and rules of OneTool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from config.desk import write
from ot.config.clients.client_reading import read_json
from ot.config.clients.known_clients import CLIENTS
from ot.config.clients.server_entry import FoundServer, Surroundings
from ot.config.clients.take_over import Configured, Plan, plan_of
from ot.config.models import Server
from ot.registry.clean_text import identifier

TOKEN = "ghp_abcdefghijklmnopqrstuvwx0123"


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Surroundings(tmp_path / "home", cwd, {"GH_KEY": "from-the-environment"}, "linux")


def plan(around: Surroundings, *names: str, known: tuple[str, ...] = ()) -> Plan:
    here = Configured({name: {"command": "w"} for name in known})
    found = plan_of(names or CLIENTS, around, {"user": here, "project": Configured()})
    for server in found.taken:
        Server.model_validate(server.entry)
    return found


def only(found: Plan) -> FoundServer:
    (server,) = found.servers
    return server


def by_name(found: Plan) -> Mapping[str, FoundServer]:
    return {server.name: server for server in found.servers}


def test_claude_codes_servers_come_with_secrets_apart(around: Surroundings) -> None:
    write(
        around.home / ".claude.json",
        f"""{{"numStartups": 12, "mcpServers": {{
            "github": {{"type": "http", "url": "https://api.example.com/mcp/",
                        "headers": {{"Authorization": "Bearer {TOKEN}"}}}},
            "files": {{"type": "stdio", "command": "npx", "args": ["-y", "@scope/server-filesystem", "/srv"],
                      "env": {{"API_KEY": "verysecret-1", "MODE": "fast", "REGION": "${{REGION:-eu}}"}}}}}},
          "projects": {{"{around.cwd}": {{"mcpServers": {{"db": {{"command": "uvx", "args": ["db-mcp"]}}}},
                                         "disabledMcpServers": ["files"]}},
                       "/elsewhere": {{"mcpServers": {{"other": {{"command": "x"}}}}}}}}}}""",
    )
    found = by_name(plan(around, "claude-code"))
    assert found.keys() == {"github", "files", "db"}
    assert found["github"].entry == {
        "url": "https://api.example.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_AUTHORIZATION}"}
    }  # fmt: skip
    assert found["github"].secrets == {"GITHUB_AUTHORIZATION": TOKEN}
    assert found["files"].entry["env"] == {"API_KEY": "${API_KEY}", "MODE": "fast", "REGION": "${REGION:-eu}"}
    assert found["files"].entry["enabled"] is False
    assert (found["files"].place.scope, found["db"].place.scope) == ("user", "user")
    assert found["db"].entry == {"command": "uvx", "args": ["db-mcp"], "only_in": str(around.cwd)}
    assert not [note for server in found.values() for note in server.notes if TOKEN in note or "verysecret" in note]


def test_a_projects_server_that_was_refused_in_claude_code_is_not_used_here(around: Surroundings) -> None:
    servers = ", ".join(f'"{name}": {{"command": "{name}"}}' for name in ("one", "two", "three", "four"))
    write(around.cwd / ".mcp.json", f'{{"mcpServers": {{{servers}}}}}')
    local = '{"disabledMcpjsonServers": ["one"]}'
    write(around.home / ".claude.json", f'{{"projects": {{"{around.cwd}": {local}}}}}')
    write(around.home / ".claude" / "settings.json", '{"disabledMcpjsonServers": ["two"]}')
    write(around.cwd / ".claude" / "settings.local.json", '{"disabledMcpjsonServers": ["three"]}')
    found = by_name(plan(around, "claude-code"))
    assert {name for name, server in found.items() if server.entry.get("enabled") is False} == {"one", "two", "three"}


def test_claude_codes_permissions_become_patterns(around: Surroundings) -> None:
    write(around.cwd / ".mcp.json", '{"mcpServers": {"git-hub": {"command": "x"}}}')
    own = '{"permissions": {"allow": ["mcp__git-hub__search", "Bash(ls)", "mcp__gone__x"], "ask": ["mcp__git-hub"]}}'
    write(around.home / ".claude" / "settings.json", own)
    write(
        around.cwd / ".claude" / "settings.json",
        '{"permissions": {"allow": ["mcp__git-hub__rm"], "deny": ["mcp__git-hub__drop"]}}',
    )
    found = plan(around, "claude-code")
    assert set(found.rules) == {("allow", "git_hub.search"), ("ask", "git_hub.*")}
    assert found.denied == ("git_hub.drop",)


def test_a_rule_is_about_the_server_of_its_own_client(around: Surroundings) -> None:
    write(around.home / ".cursor" / "mcp.json", '{"mcpServers": {"hub": {"command": "a"}, "db": {"command": "b"}}}')
    write(around.home / ".claude.json", '{"mcpServers": {"hub": {"command": "c"}}}')
    rules = '{"allow": ["mcp__hub__read", "mcp__db__drop"], "deny": ["mcp__db__wipe", "mcp__hub__rm"]}'
    write(around.home / ".claude" / "settings.json", f'{{"permissions": {rules}}}')
    assert set(plan(around, "cursor", "claude-code").rules) == {
        ("allow", "hub_claude_code.read"), ("deny", "hub_claude_code.rm"), ("deny", "db.wipe")
    }  # fmt: skip


def test_a_rule_names_a_tool_as_its_pack_does(around: Surroundings) -> None:
    write(around.cwd / ".mcp.json", '{"mcpServers": {"hub": {"command": "x"}}}')
    rules = '{"deny": ["mcp__hub__import", "mcp__hub__2fa", "mcp__hub__drop-*", "mcp__hub__lösche"]}'
    write(around.home / ".claude" / "settings.json", f'{{"permissions": {rules}}}')
    names = [pattern.partition(".")[2] for _, pattern in plan(around, "claude-code").rules]
    assert names == [identifier("import"), identifier("2fa"), "drop_*", identifier("lösche")]


@pytest.mark.parametrize(
    ("platform", "environ", "file"),
    [
        ("linux", {}, ".config/Claude/claude_desktop_config.json"),
        ("darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", {}, "AppData/Roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_claude_desktop_is_found_on_every_platform(
    around: Surroundings, platform: str, environ: Mapping[str, str], file: str
) -> None:
    here = Surroundings(around.home, around.cwd, environ, platform)
    write(here.home / file, '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@scope/server-memory"]}}}')
    assert only(plan(here, "claude-desktop")).entry == {"command": "npx", "args": ["-y", "@scope/server-memory"]}


def test_cursors_references_and_env_file_are_read(around: Surroundings) -> None:
    write(around.cwd / ".env", "# secrets\nexport DB_URL='postgres://x'\nNOT A LINE\nEMPTY=\nPLAIN=a # note\n")
    write(
        around.home / ".cursor" / "mcp.json",
        """{"mcpServers": {"db": {"command": "uvx",
            "args": ["db-mcp", "--token", "${env:GH_KEY}", "--root=${userHome}"],
            "envFile": "${workspaceFolder}/.env"}}}""",
    )
    server = only(plan(around, "cursor"))
    assert server.entry["args"] == ["db-mcp", "--token", "${GH_KEY}", f"--root={around.home}"]
    assert server.entry["env"] == {"DB_URL": "${DB_URL}", "EMPTY": "", "PLAIN": "${PLAIN}"}
    assert server.secrets == {"GH_KEY": "from-the-environment", "DB_URL": "postgres://x", "PLAIN": "a"}


def test_cursors_own_approvals_are_the_users(around: Surroundings) -> None:
    text = '{"mcpServers": {"db": {"command": "x", "autoApprove": ["query"], "alwaysAllow": ["list-all"]}}}'
    write(around.home / ".cursor" / "mcp.json", text)
    assert set(plan(around, "cursor").rules) == {("allow", "db.query"), ("allow", "db.list_all")}


def test_vs_codes_inputs_become_secrets(around: Surroundings) -> None:
    write(
        around.cwd / ".vscode" / "mcp.json",
        """{
          // asked once
          "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
          "servers": {
            "fs": {"type": "stdio", "command": "npx", "args": ["-y", "server-fs", "${workspaceFolder}/docs",],
                   "env": {"KEY": "${input:api-key}"}, "dev": {"watch": "*"}}, /* done */
          },
        }""",
    )
    server = only(plan(around, "vscode"))
    assert server.entry == {
        "command": "npx",
        "args": ["-y", "server-fs", "${workspace}/docs"],
        "env": {"KEY": "${API_KEY}"},
        "cwd": "${workspace}",
    }
    assert any("add API_KEY to the secrets file" in note for note in server.notes)
    assert "left out: dev" in server.notes


def test_vs_code_says_when_the_key_is_one_that_it_ignores_itself(around: Surroundings) -> None:
    write(around.cwd / ".vscode" / "mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    found = plan(around, "vscode")
    assert found.servers == ()
    assert "its key is 'servers'" in found.problems[0]


def test_codexes_own_keys_are_understood(around: Surroundings) -> None:
    write(
        around.home / ".codex" / "config.toml",
        """
        model = "x"
        [mcp_servers.docs]
        command = "docs-server"
        args = ["--port", "1"]
        env_vars = ["LOCAL_TOKEN", { name = "REMOTE_TOKEN", source = "remote" }]
        cwd = "/srv"
        startup_timeout_sec = 20
        tool_timeout_sec = 90.5
        enabled_tools = ["open", "search"]
        disabled_tools = ["screenshot"]
        [mcp_servers.docs.env]
        MODE = "fast"
        [mcp_servers.figma]
        url = "https://mcp.figma.com/mcp"
        bearer_token_env_var = "GH_KEY"
        http_headers = { "X-Region" = "us-east-1" }
        env_http_headers = { "X-Org" = "MISSING_ORG" }
        enabled = false
        """,
    )
    found = by_name(plan(around, "codex"))
    assert found["docs"].entry == {
        "command": "docs-server",
        "args": ["--port", "1"],
        "env": {"LOCAL_TOKEN": "${LOCAL_TOKEN}", "REMOTE_TOKEN": "${REMOTE_TOKEN}", "MODE": "fast"},
        "cwd": "/srv",
        "start_seconds": 20,
        "timeout": 90.5,
        "tools": ["open", "search", "!screenshot"],
    }
    figma = found["figma"]
    assert figma.entry["headers"] == {
        "X-Region": "us-east-1", "X-Org": "${MISSING_ORG}", "Authorization": "Bearer ${GH_KEY}"
    }  # fmt: skip
    assert figma.entry["enabled"] is False
    assert figma.secrets == {"GH_KEY": "from-the-environment"}
    assert "headers.X-Org: add MISSING_ORG to the secrets file" in figma.notes


def test_windsurfs_address_is_its_server_url(around: Surroundings) -> None:
    entry = '{"serverUrl": "https://mcp.example.com/mcp", "disabledTools": ["drop"], "disabled": true}'
    text = f'{{"mcpServers": {{"figma": {entry}}}}}'
    write(around.home / ".codeium" / "windsurf" / "mcp_config.json", text)
    assert only(plan(around, "windsurf")).entry == {
        "url": "https://mcp.example.com/mcp", "enabled": False, "tools": ["!drop"]
    }  # fmt: skip


def test_zeds_servers_are_its_context_servers(around: Surroundings) -> None:
    write(
        around.home / ".config" / "zed" / "settings.json",
        """// Zed settings
        { "theme": "One", "context_servers": {
            "new": {"source": "custom", "command": "npx", "args": ["-y", "p"], "env": {}},
            "old": {"command": {"path": "/usr/bin/thing", "args": ["serve"], "env": {"A": 1}}, "settings": {}},
            "far": {"url": "https://mcp.example.com/mcp", "headers": {"X-Auth-Token": "tok-123456789"}},
            "extension": {"settings": {"x": 1}},
        }}""",
    )
    found = by_name(plan(around, "zed"))
    assert found["new"].entry == {"command": "npx", "args": ["-y", "p"]}
    assert found["old"].entry == {"command": "/usr/bin/thing", "args": ["serve"], "env": {"A": "1"}}
    assert found["far"].entry["headers"] == {"X-Auth-Token": "${FAR_X_AUTH_TOKEN}"}
    assert "only Zed knows its command" in found["extension"].skipped


def test_gemini_clis_addresses_variables_and_limits_are_understood(around: Surroundings) -> None:
    write(
        around.home / ".gemini" / "settings.json",
        """{"mcp": {"excluded": ["off"]}, "mcpServers": {
            "far": {"httpUrl": "https://mcp.example.com/mcp", "headers": {"X-Org": "$GH_KEY"}, "timeout": 30000},
            "near": {"command": "x", "env": {"A": "$B", "C": "${D}"}, "includeTools": ["one"], "excludeTools": ["two"],
                     "trust": true},
            "off": {"command": "y"}}}""",
    )
    found = by_name(plan(around, "gemini-cli"))
    assert found["far"].entry == {
        "url": "https://mcp.example.com/mcp", "headers": {"X-Org": "${GH_KEY}"}, "timeout": 30.0
    }  # fmt: skip
    assert found["near"].entry == {"command": "x", "env": {"A": "${B}", "C": "${D}"}, "tools": ["one", "!two"]}
    assert "left out: trust" in found["near"].notes
    assert found["off"].entry["enabled"] is False


def test_a_server_that_gemini_cli_does_not_allow_is_off(around: Surroundings) -> None:
    servers = '"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}'
    write(around.home / ".gemini" / "settings.json", f'{{"mcp": {{"allowed": ["a"]}}, {servers}}}')
    found = by_name(plan(around, "gemini-cli"))
    assert ("enabled" in found["a"].entry, found["b"].entry["enabled"]) == (False, False)


# ---------------------------------------------------------------- what all have in common


def one(around: Surroundings, entry: str, name: str = "a") -> FoundServer:
    write(around.home / ".cursor" / "mcp.json", f'{{"mcpServers": {{"{name}": {entry}}}}}')
    return only(plan(around, "cursor"))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('{"command": "onetool", "args": ["serve"]}', "OneTool itself"),
        ('{"command": "/home/x/.local/bin/uvx", "args": ["onetool-run@1.2", "serve"]}', "OneTool itself"),
        ('{"command": "uvx", "args": ["--from", "onetool-run", "onetool", "serve"]}', "OneTool itself"),
        ('{"type": "ws", "url": "https://x.example/ws"}', "speaks WebSocket"),
        ('{"note": 1}', "neither a command nor an address"),
        ('{"url": "file:///etc/passwd"}', "not an address"),
        ('{"url": "http://169.254.169.254/"}', "link-local"),
    ],
)
def test_what_cannot_be_taken_is_left_out_and_says_why(around: Surroundings, entry: str, why: str) -> None:
    assert why in one(around, entry).skipped


@pytest.mark.parametrize("key", ["type", "transport"])
def test_a_server_of_the_older_transport_is_taken_as_one(around: Surroundings, key: str) -> None:
    found = one(around, f'{{"{key}": "sse", "url": "https://x.example/sse"}}')
    assert (found.skipped, found.entry) == ("", {"url": "https://x.example/sse", "type": "sse"})


def test_a_directory_called_onetool_is_not_onetool(around: Surroundings) -> None:
    assert one(around, '{"command": "npx", "args": ["server-fs", "/home/x/onetool"]}').skipped == ""


@pytest.mark.parametrize(
    ("given", "here"), [("My Server!", "My_Server"), ("7up", "server_7up"), ("ot", "ot_server"), ("if", "if_server")]
)
def test_names_in_clients_files_are_made_usable_in_programs(around: Surroundings, given: str, here: str) -> None:
    server = one(around, '{"command": "x"}', given)
    assert server.name == here
    assert any(f"'{given}' cannot be a name" in note for note in server.notes)


@pytest.mark.parametrize(
    ("args", "left"),
    [
        (["--api-key", "abcdef-123456"], ["--api-key", "${A_API_KEY}"]),
        (["--api-key=abcdef-123456"], ["--api-key=${A_API_KEY}"]),
        ([TOKEN], ["${A_ARG}"]),
        (["--token-file", "/run/token"], ["--token-file", "/run/token"]),
        (["-y", "pkg", "--verbose"], ["-y", "pkg", "--verbose"]),
    ],
)
def test_secrets_in_arguments_are_taken_out(around: Surroundings, args: list[str], left: list[str]) -> None:
    import json

    assert one(around, f'{{"command": "x", "args": {json.dumps(args)}}}').entry["args"] == left


def test_a_secret_in_an_address_is_taken_out(around: Surroundings) -> None:
    server = one(around, '{"url": "https://x.example/mcp?region=eu&api_key=abcdef123456"}')
    assert server.entry["url"] == "https://x.example/mcp?region=eu&api_key=${A_API_KEY}"
    assert server.secrets == {"A_API_KEY": "abcdef123456"}


def test_the_same_server_twice_is_taken_once_and_another_gets_another_name(around: Surroundings) -> None:
    write(around.home / ".cursor" / "mcp.json", '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    write(
        around.home / ".codeium" / "windsurf" / "mcp_config.json",
        '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "z"}, "c": {"command": "w"}}}',
    )
    found = plan(around, "cursor", "windsurf", known=("c",))
    assert [(server.name, bool(server.skipped)) for server in found.servers] == [
        ("a", False), ("b", False), ("a", True), ("b_windsurf", False), ("c", True)
    ]  # fmt: skip


def test_two_secrets_of_one_name_are_kept_apart(around: Surroundings) -> None:
    one, two = ('{"command": "x", "env": {"API_KEY": "%s"}}' % value for value in ("first-one", "second-one"))  # noqa: UP031 - braces
    write(around.home / ".cursor" / "mcp.json", f'{{"mcpServers": {{"a": {one}, "b": {two}}}}}')
    found = by_name(plan(around, "cursor"))
    assert found["a"].secrets == {"API_KEY": "first-one"}
    assert found["b"].secrets == {"B_API_KEY": "second-one"}
    assert found["b"].entry["env"] == {"API_KEY": "${B_API_KEY}"}


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("data", [b"\xff\xfe", b"[[[", b"{", b"[" * 100_000, b'{"mcpServers": [1], "servers": 3}', b""])
def test_a_broken_file_harms_no_other(around: Surroundings, name: str, data: bytes) -> None:
    for place in CLIENTS[name].places(around):
        write(place.file, data)
    assert plan(around, name).servers == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "//no /* comment */", /* x, */ "b": [1,], }', {"a": "//no /* comment */", "b": [1]}),
        ('{"a": "\\"//", // end\n"b": 1}', {"a": '"//', "b": 1}),
        ("// nothing\n", {}),
    ],
)
def test_comments_and_last_commas_are_read_over(text: str, value: Any) -> None:
    assert read_json(text.encode()) == value


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", [b"/* */ ", b"/*", b'\\"', b'"', b",", b", //\n", b",/**/"])
def test_no_file_takes_long_to_refuse(unit: bytes) -> None:
    with pytest.raises(ValueError):
        read_json(b'{"a":1,"' + unit * 100_000)


# ---------------------------------------------------------------- where a server stands


def test_a_projects_server_keeps_the_directory_that_its_client_starts_it_in(around: Surroundings) -> None:
    servers = {"a": {"command": "python", "args": ["server.py"]}, "b": {"command": "x", "cwd": "./sub"}}
    write(around.cwd / ".cursor" / "mcp.json", json.dumps({"mcpServers": servers}))
    write(around.cwd / "server.py", "")
    one, two = plan(around, "cursor").servers
    assert one.entry == {"command": "python", "args": ["server.py"], "cwd": "${workspace}"}
    assert two.entry["cwd"] == "${workspace}/sub"
    assert "cwd: ${workspace} was added, where that client starts it" in one.notes
    assert "cwd: ./sub became ${workspace}/sub" in two.notes


def test_paths_of_a_users_server_are_written_from_the_workspace(around: Surroundings) -> None:
    args = [".", "./docs", "server.py", "--root=./docs", "gone.py", "docs", "/abs", "--flag", "${workspaceFolder}/x"]
    entry = {"command": "python", "args": args, "cwd": "."}
    write(around.home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": entry}}))
    write(around.cwd / "server.py", "")
    (around.cwd / "docs").mkdir()
    server = only(plan(around, "cursor"))
    expected = ["${workspace}", "${workspace}/docs", "${workspace}/server.py", "--root=${workspace}/docs"]
    assert server.entry["args"] == [*expected, "gone.py", "docs", "/abs", "--flag", "${workspace}/x"]
    assert server.entry["cwd"] == "${workspace}"
    for note in ("args: . became ${workspace}", "args: server.py became ${workspace}/server.py"):
        assert note in server.notes
    assert "args: ${workspaceFolder} became ${workspace}" in server.notes
    assert not any("secrets" in note for note in server.notes)


@pytest.mark.parametrize("package", ["@modelcontextprotocol/server-everything", "owner/name", "socket.io", "name"])
def test_a_directory_named_like_a_package_does_not_become_what_a_users_server_runs(
    around: Surroundings, package: str
) -> None:
    (around.cwd / package).mkdir(parents=True)
    entry = {"command": "npx", "args": ["-y", package, "."]}
    write(around.home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": entry}}))
    assert only(plan(around, "cursor")).entry == {"command": "npx", "args": ["-y", package, "${workspace}"]}
