"""onetool add, servers, remove, enable, disable, allow, ask and deny, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
import yaml

from cli import small_server
from cli.command import OneTool
from config.desk import write
from ot.cli.adding.typed_words import entry_of_arguments, guess_name, name_and_arguments

SERVER = """
import os
from fastmcp import FastMCP

server = FastMCP("small")


@server.tool
def greet(name: str) -> str:
    "Greet somebody."
    return "hello " + name


if os.environ.get("API_TOKEN") == "wrong-token":
    raise SystemExit("no entry with wrong-token")
server.run(show_banner=False)
"""


@pytest.fixture
def server(tmp_path: Path) -> str:
    """The path of a small MCP server."""
    file = tmp_path / "small_server.py"
    file.write_text(SERVER)
    return str(file)


def config(onetool: OneTool) -> dict[str, object]:
    return yaml.safe_load((onetool.user / "onetool.yaml").read_text())


# ---------------------------------------------------------------- add


def test_add_writes_the_server_and_says_what_came(onetool: OneTool, server: str) -> None:
    ended = onetool("add", "--json", "small", sys.executable, server)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (told["name"], told["tools"], told["secrets"]) == ("small", 1, [])
    assert 20 < told["tokens"] < 300
    assert config(onetool)["servers"] == {"small": {"command": sys.executable, "args": [server]}}
    # It is remembered: nothing is started to know its tools.
    assert f"small  enabled  user  stdio  1 tool  {sys.executable} {server}" in onetool("servers").out
    checked = json.loads(onetool("check", "--json").out)
    assert (checked["ok"], checked["servers"][0]["tools"]) == (True, 1)
    assert [row["state"] for row in checked["starts"] if row["name"] == "small"] == ["started"]
    assert "greet" in onetool("run", "ot.help(query='small')").out


def test_add_of_a_server_that_fails_says_why_without_its_secret(onetool: OneTool, server: str) -> None:
    ended = onetool("add", "-e", "API_TOKEN=wrong-token", "small", sys.executable, server)
    assert ended.code == 5
    assert "cannot be used yet" in ended.out
    assert "Its last words: no entry with [secret:API_TOKEN]" in ended.out
    assert "onetool remove small" in ended.out
    assert "wrong-token" not in ended.out + ended.err
    assert "wrong-token" not in (onetool.user / "onetool.yaml").read_text()
    assert yaml.safe_load((onetool.user / "secrets.yaml").read_text()) == {"API_TOKEN": "wrong-token"}


def test_add_of_a_program_that_is_not_there_is_told_before_it_is_tried(onetool: OneTool) -> None:
    ended = onetool("add", "gone", "/no/such-program", "--flag")
    assert ended.code == 5
    assert "there is no program '/no/such-program'" in ended.out


def test_add_says_that_a_relative_program_is_not_looked_up_here(
    onetool: OneTool,
) -> None:
    ended = onetool("add", "here", "./server", "--flag")
    assert ended.code == 5
    assert "'./server' is a relative path" in ended.out
    assert "write the full path" in ended.out


def test_add_refuses_a_name_that_is_taken(onetool: OneTool) -> None:
    assert onetool("add", "--no-connect", "uvx", "mcp-server-fetch").code == 0
    ended = onetool("add", "--no-connect", "fetch", "uvx", "other")
    assert ended.code == 1
    assert "there is already a server 'fetch' (onetool remove fetch, or give another name)" in ended.err


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        (["uvx", "mcp-server-git"], "git_server", "It is called git_server, because git is a bundled pack already;"),
        (["uvx", "mcp-server-time"], "time_server", "because time is a module of Python already;"),
        (["preset:context7"], "context7_server", "because context7 is a bundled pack already;"),
        (["npx", "weather-mcp"], "weather_server", "because weather is a pack of yours already;"),
        (["--name", "vcs", "uvx", "mcp-server-git"], "vcs", ""),
        (["--pack", "vcs", "uvx", "mcp-server-git"], "git", ""),
        (["git", "uvx", "mcp-server-git"], "git", "git means this server from now on, and not a bundled pack."),
    ],
)  # fmt: skip
def test_a_new_server_hides_nothing_by_accident(onetool: OneTool, words: list[str], name: str, said: str) -> None:
    write(onetool.user / "tools" / "weather" / "weather_tools.py", "def forecast() -> str: ...\n")
    ended = onetool("add", "--no-connect", *words)
    assert ended.code == 0, ended.err
    assert [row["name"] for row in json.loads(onetool("servers", "--json").out)] == [name]
    assert said in ended.out
    assert ("choose another name with --name." in ended.out) == name.endswith("_server")


def test_a_server_that_replaces_a_bundled_pack_is_named_wherever_one_looks(onetool: OneTool) -> None:
    start = f"command: {sys.executable}, args: [{small_server.FILE}]"
    write(onetool.user / "onetool.yaml", f"servers: {{git: {{{start}}}}}")
    said = "The server 'git' replaces the bundled pack 'git': to use both, give the server another name"
    for command in ("servers", "list", "check", "doctor"):
        ended = onetool(command)
        assert said in ended.out + ended.err, command
    missing = onetool("run", "git.blame(path='x')")
    assert "AttributeError: 'blame' is not in pack 'git'" in missing.err
    assert said in missing.err
    write(onetool.user / "onetool.yaml", "servers: {vcs: {command: nothing}}")
    assert "replaces" not in onetool("servers").err


def test_a_secret_of_the_same_name_is_kept_apart(onetool: OneTool) -> None:
    onetool("add", "--no-connect", "-e", "API_KEY=first-one", "a", "uvx", "x")
    onetool("add", "--no-connect", "-e", "API_KEY=second-one", "b", "uvx", "y")
    secrets = yaml.safe_load((onetool.user / "secrets.yaml").read_text())
    assert secrets == {"API_KEY": "first-one", "B_API_KEY": "second-one"}


def test_adding_to_a_trusted_project_keeps_it_trusted(onetool: OneTool) -> None:
    onetool("init")
    assert onetool("add", "--no-connect", "--project", "uvx", "mcp-server-time").code == 0
    listed = onetool("servers")
    assert (listed.out.split()[0], "project  stdio" in listed.out, listed.err) == ("time_server", True, "")


@pytest.mark.parametrize(
    ("words", "name", "line"),
    [
        (["time", "uvx", "mcp-server-time", "--x=1"], "time", ["uvx", "mcp-server-time", "--x=1"]),
        (["uvx", "mcp-server-time"], "time", ["uvx", "mcp-server-time"]),
        (["npx", "-y", "@modelcontextprotocol/server-everything@1.2"], "everything", None),
        (["npx:@scope/github-mcp-server"], "github", ["npx", "-y", "@scope/github-mcp-server"]),
        (["uvx:mcp-server-git==2.0"], "git", ["uvx", "mcp-server-git==2.0"]),
        (["npx -y @scope/notes-mcp --flag"], "notes", ["npx", "-y", "@scope/notes-mcp", "--flag"]),
        (["mine", "npx -y pkg"], "mine", ["npx", "-y", "pkg"]),
        (["https://mcp.linear.app/mcp"], "linear", ["https://mcp.linear.app/mcp"]),
        (["https://api.example.com/mcp"], "example", None),
        (["http://127.0.0.1:8000/mcp"], "server", None),
        (["docker", "run", "-i", "--rm", "mcp/fetch"], "fetch", None),
        (["python", "-m", "my_mcp"], "my", None),
        (["./bin/thing"], "thing", None),
    ],
)  # fmt: skip
def test_the_name_is_guessed_from_what_is_run(words: list[str], name: str, line: list[str] | None) -> None:
    given, found = name_and_arguments(words)
    assert (given or guess_name(found)) == name
    assert found == (line or words)


def test_a_word_that_is_nothing_gets_a_hint() -> None:
    with pytest.raises(typer.BadParameter, match="write npx:no-such-thing, uvx:no-such-thing or an address"):
        name_and_arguments(["no-such-thing"])


def test_options_of_add_become_settings_of_the_server() -> None:
    entry, secrets = entry_of_arguments(
        "s", ["https://h/mcp"], [], ["Authorization: Bearer abc-123-def", "X-Mode=a:b"], "p"
    )
    assert entry == {
        "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${S_AUTHORIZATION}", "X-Mode": "a:b"}, "pack": "p"
    }  # fmt: skip
    assert secrets == {"S_AUTHORIZATION": "abc-123-def"}
    assert entry_of_arguments("s", ["x"], ["TOKEN", "A=b=c"], [], "")[0]["env"] == {"TOKEN": "${TOKEN}", "A": "b=c"}
    with pytest.raises(typer.BadParameter, match="write --header"):
        entry_of_arguments("s", ["https://h/"], [], ["nothing"], "")


# ---------------------------------------------------------------- servers, remove, enable, disable


def test_servers_are_listed_with_what_is_wrong(onetool: OneTool) -> None:
    assert "There are no servers" in onetool("servers").err
    onetool("add", "--no-connect", "a", "sh", "-c", "true")
    onetool("add", "--no-connect", "-e", "NOT_SET_ANYWHERE", "b", "sh")
    onetool("add", "--no-connect", "c", "./gone")
    onetool("disable", "c")
    out = onetool("servers").out
    assert "a  enabled       user  stdio  not asked yet  sh -c true\n" in out
    assert "b  cannot start  user  stdio  not asked yet  sh\n  servers.b.env.NOT_SET_ANYWHERE needs NOT_SET" in out
    assert "c  disabled" in out
    rows = json.loads(onetool("servers", "--json").out)
    assert [(row["name"], row["enabled"], bool(row["problem"])) for row in rows] == [
        ("a", True, False), ("b", True, True), ("c", False, False)
    ]  # fmt: skip
    checked = onetool("check")
    assert "servers: 3" in checked.out
    assert "not started: server c: it is disabled" in checked.out
    assert "error: server a cannot start: its process ended: exit code 0" in checked.out
    assert "error: server b cannot start: servers.b.env.NOT_SET_ANYWHERE needs NOT_SET" in checked.out
    assert (checked.code, checked.err) == (1, "")


def test_a_server_is_switched_and_removed_with_all_comments_kept(onetool: OneTool) -> None:
    onetool.user.mkdir(parents=True)
    file = onetool.user / "onetool.yaml"
    file.write_text("# mine\nservers:\n  # about a\n  a: {command: sh} # here\n# end\n")
    assert onetool("disable", "a").code == 0
    assert file.read_text() == "# mine\nservers:\n  # about a\n  a: {command: sh, enabled: false} # here\n# end\n"
    assert "already" in onetool("disable", "a").out
    assert onetool("enable", "a").code == 0
    assert json.loads(onetool("remove", "a", "--json").out)["changed"] is True
    assert file.read_text() == "# mine\nservers:\n  # about a\n# end\n"


@pytest.mark.parametrize("command", ["remove", "enable", "disable"])
def test_a_server_that_is_not_there_ends_with_three(onetool: OneTool, command: str) -> None:
    ended = onetool(command, "gone")
    assert (ended.code, ended.err) == (3, "onetool: there is no server 'gone'.\n")


# ---------------------------------------------------------------- allow, ask, deny


def test_patterns_go_into_the_users_configuration(onetool: OneTool) -> None:
    onetool("init")
    assert onetool("allow", "github.*").code == 0
    assert onetool("ask", "*.delete_*").code == 0
    assert json.loads(onetool("deny", "github.*", "--json").out)["changed"] is True
    assert config(onetool)["policy"] == {"allow": [], "ask": ["*.delete_*"], "deny": ["github.*"]}
    assert "already" in onetool("deny", "github.*").out
    checked = onetool("check").out
    assert "  ask: *.delete_*\n  deny: github.*\n" in checked


def test_who_denies_a_tool_is_told_what_else_that_covers(onetool: OneTool) -> None:
    said = onetool("deny", "file.write").out
    covered = "code.rewrite, file.append, file.copy, file.edit, file.make_directory, file.move, file.patch"
    assert said.splitlines()[1].endswith(f"need the permission of what it names: {covered}, ot.stats(output=...)")
    also = json.loads(onetool("ask", "file.read", "--json").out)["also"]
    assert {"file.search", "rg.search", "code.rewrite", "data.query", "documents.info"} <= set(also)
    assert "code.rewrite" not in onetool("allow", "file.write").out
    assert "file.edit" not in onetool("deny", "file.*").out


@pytest.mark.parametrize(
    ("rule", "pattern", "words"),
    [
        ("deny", "nosuch.tool", "there is no pack 'nosuch' here; the rule applies when there is. Packs: brave, code"),
        (
            "allow",
            "file.raed",
            "there is no tool 'file.raed' here; the rule applies when there is. Did you mean 'file.r",
        ),
        ("ask", "file.x*", "there is no tool 'file.x*' here"),
    ],
)
def test_a_pattern_for_a_tool_that_does_not_exist_is_written_with_a_warning(
    onetool: OneTool, rule: str, pattern: str, words: str
) -> None:
    ended = onetool(rule, pattern)
    assert (ended.code, ended.err.startswith(f"warning: {words}")) == (0, True)
    assert json.loads(onetool(rule, pattern, "--json").out)["warning"].startswith(words)
    assert config(onetool)["policy"] == {rule: [pattern]}


@pytest.mark.parametrize("pattern", ["file.read", "file.*", "*.delete_*", "f*.x", "off.x", "unasked.x"])
def test_a_pattern_that_may_match_a_tool_gives_no_warning(onetool: OneTool, pattern: str) -> None:
    onetool("add", "--no-connect", "off", "sh")
    onetool("disable", "off")
    onetool("add", "--no-connect", "unasked", "sh")
    assert (onetool("deny", pattern).code, onetool("deny", pattern).err) == (0, "")


def test_names_of_servers_and_clients_are_completed(onetool: OneTool) -> None:
    onetool("add", "--no-connect", "alpha", "sh")
    onetool("add", "--no-connect", "beta", "sh")

    def completed(line: str) -> list[str]:
        words = {"_ONETOOL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        return onetool.process(**words).out.split()

    assert completed("onetool remove ") == ["alpha", "beta"]
    assert completed("onetool enable b") == ["beta"]
    assert completed("onetool init --from c") == ["claude-code", "claude-desktop", "cursor", "codex"]


def test_a_pattern_that_matches_nothing_is_refused(onetool: OneTool) -> None:
    ended = onetool("deny", "vault")
    assert ended.code == 1
    assert "'vault' matches no tool: write 'vault.*'" in ended.err
    assert not (onetool.user / "onetool.yaml").exists()
