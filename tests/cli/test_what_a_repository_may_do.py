"""The table of what a repository may influence: one test a row, before trust, after it, and never."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.command import OneTool
from config.desk import write
from ot.config.load import Loaded, load_config
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.introspect.notify import notify
from ot.output.file_blobs import FileBlobs
from ot.workspace import Workspace

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "trust.md"
HEADING = "## What a repository may influence"


def loaded(onetool: OneTool) -> Loaded:
    paths = replace(Paths.of(onetool.cwd, onetool.user), environ={"MY_TOKEN": "users-token"})
    return load_config(paths, Trust(onetool.user))


def settings(onetool: OneTool, text: str) -> None:
    write(onetool.project / "onetool.yaml", text)


def trust(onetool: OneTool) -> str:
    """Trust the project and return what was shown."""
    ended = onetool("trust", "--yes")
    assert ended.code == 0, ended.err
    return ended.out


def refused(onetool: OneTool, text: str) -> str:
    """Return why a project with these settings cannot be trusted."""
    settings(onetool, text)
    ended = onetool("trust", "--yes")
    assert ended.code == 1
    assert loaded(onetool).project_state == "untrusted"
    return ended.err


def everything(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def client(onetool: OneTool, entry: dict[str, Any]) -> None:
    write(onetool.cwd / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"db": entry}}))


# ---------------------------------------------------------------- the rows


def packs(onetool: OneTool) -> None:
    pack = '__ot_requires__ = {"secrets": ["MINE", "ITS"]}\ndef f(): ...\n'
    write(onetool.user / "tools" / "hub" / "hub_tools.py", pack)
    write(onetool.user / "onetool.yaml", "tools: {hub: {token: '${MINE}'}}\n")
    write(onetool.user / "secrets.yaml", "MINE: users-token\n")
    for name in ("file", "hub"):
        write(onetool.project / "tools" / name / f"{name}_tools.py", pack)
    settings(onetool, "tools: {hub: {url: 'https://its/'}}\n")
    write(onetool.project / "secrets.yaml", "ITS: projects-token\nMINE: projects-mine\n")
    paths = Paths.of(onetool.cwd, onetool.user)
    assert Workspace.alone(paths).picture.workers["hub"].secrets == {"MINE": "users-token"}
    shown = trust(onetool)
    assert "replaces: the bundled pack 'file'" in shown
    assert "replaces: your pack 'hub'" in shown
    hub = Workspace.alone(paths).picture.workers["hub"]
    assert hub.secrets == {"ITS": "projects-token", "MINE": "projects-mine"}
    assert hub.settings == {"url": "https://its/"}


def servers(onetool: OneTool) -> None:
    write(onetool.user / "onetool.yaml", "servers: {hub: {url: 'https://mine/', headers: {X: '${MY_TOKEN}'}}}\n")
    settings(onetool, "servers: {hub: {url: 'https://its/'}, new: {command: sh, env: {A: '${MY_TOKEN:-none}'}}}\n")
    assert loaded(onetool).servers_of_project == frozenset()
    assert "replaces: your server 'hub'" in trust(onetool)
    found = loaded(onetool)
    assert found.servers_of_project == {"hub", "new"}
    assert found.config.servers["hub"].headers == {}
    assert "MY_TOKEN" not in found.secrets.project


def snippets(onetool: OneTool) -> None:
    settings(onetool, "aliases: {r: file.read}\nsnippets: {hi: {body: '1'}}\nprojects: {site: /srv}\n")
    found = loaded(onetool).config
    assert (found.aliases, found.snippets, found.projects) == ({}, {}, {})
    shown = trust(onetool)
    found = loaded(onetool).config
    assert (set(found.aliases), set(found.snippets), set(found.projects)) == ({"r"}, {"hi"}, {"site"})
    assert "  aliases.r  file.read" in shown


def limits(onetool: OneTool) -> None:
    settings(onetool, "limits: {calls: 5}\nsecurity: {sanitize: always}\npolicy: {deny: ['vault.*']}\n")
    assert loaded(onetool).config.limits.calls == 1000
    trust(onetool)
    found = loaded(onetool).config
    assert (found.limits.calls, found.security.sanitize, found.policy.deny) == (5, "always", ("vault.*",))
    onetool("untrust")
    assert "may not be raised" in refused(onetool, "limits: {calls: 5000}\n")
    assert "may not be raised" in refused(onetool, "sessions: {most: 100}\n")


def users_alone(onetool: OneTool) -> None:
    for text in (
        "policy: {allow: ['*.*']}",
        "policy: {ask: ['a.b']}",
        "engines: {use: trusted}",
        "workers: {idle_seconds: 5}",
        "security: {roots: ['/']}",
        "tools: {web: {internal_hosts: [localhost]}}",
        "chat: {model: x}",
    ):
        assert "may not be set by a project" in refused(onetool, f"{text}\n")


def secrets(onetool: OneTool) -> None:
    settings(onetool, "servers: {a: {command: sh, env: {K: '${K}'}}}\n")
    write(onetool.project / "secrets.yaml", "K: value-1\nMY_TOKEN: its-own\n")
    assert loaded(onetool).secrets.project == {}
    assert "values are not shown: K, MY_TOKEN" in trust(onetool)
    assert loaded(onetool).secrets.project == {"K": "value-1", "MY_TOKEN": "its-own"}
    write(onetool.project / "secrets.yaml", "K: changed-1\n")
    assert loaded(onetool).project_state == "changed"


def references(onetool: OneTool) -> None:
    for entry in (
        "command: '${X}'",
        "command: sh, args: ['${X}']",
        "command: sh, cwd: '${X}'",
        "url: 'https://h/${X}'",
    ):
        assert "may not refer to ${X}" in refused(onetool, f"servers: {{a: {{{entry}}}}}\n")
    assert "may not refer to a secret" in refused(onetool, "servers: {a: {command: sh, env: {LD_PRELOAD: '${X}'}}}\n")


def named_paths(onetool: OneTool) -> None:
    for text in (
        "secrets_file: ~/.bash_profile",
        "include: [../../x.yaml]",
        "output: {result_store_dir: ../x}",
        "tools: {msg: {topics: [{pattern: a, file: ~/.profile}]}}",
    ):
        assert refused(onetool, f"{text}\n")
    settings(
        onetool, "output: {result_store_dir: tmp/d/r}\ntools: {msg: {topics: [{pattern: a, file: tmp/d/.profile}]}}\n"
    )
    trust(onetool)
    found = loaded(onetool)
    (onetool.project / "tmp").mkdir()
    (onetool.project / "tmp" / "d").symlink_to(onetool.home)
    before = everything(onetool.home)
    with pytest.raises(OSError):
        notify(found.config.topics, "a", "x\ntouch P\n#", project=onetool.project)
    blobs = FileBlobs(onetool.project / "tmp/d/r", ttl=0, max_total_bytes=1000, below=found.below)
    with pytest.raises(Exception, match="could not be stored"):
        blobs.put("h" * 22, [b"x"], lambda: pytest.fail("it was written"))
    assert everything(onetool.home) == before


def links(onetool: OneTool) -> None:
    settings(onetool, "version: 1\n")
    for name in ("tools", "tmp/d", "logs", "more.yaml"):
        link = onetool.project / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(onetool.home)
        ended = onetool("trust", "--yes")
        assert ended.code == 1
        assert f"{name} is a symbolic link" in ended.err
        link.unlink()
    trust(onetool)
    (onetool.project / "stats").mkdir()
    (onetool.project / "stats" / "stats.db").symlink_to(onetool.home / "x")
    assert loaded(onetool).project_state == "changed"


def state_files(onetool: OneTool) -> None:
    settings(onetool, "version: 1\n")
    stats, log = onetool.project / "stats" / "stats.db", onetool.project / "logs" / "onetool.log"
    write(log, '{"ts": "later", "level": "\\u001b[31m", "span": "s", "duration": "long"}\nno json\n')
    stats.parent.mkdir()
    with closing(sqlite3.connect(stats)) as brought:
        brought.executescript("CREATE TABLE runs (x); CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END")
    assert "no json" not in onetool("logs").out
    trust(onetool)
    assert "no json" not in onetool("logs").out
    assert json.loads(onetool("stats", "--json").out)["total_calls"] == 0


def report(onetool: OneTool) -> None:
    settings(onetool, "version: 1\n")
    trust(onetool)
    mine = write(onetool.home / "mine", "mine\n")
    write(onetool.project / "secrets.yaml", "K: v\n")
    (onetool.project / "secrets.yaml").unlink()
    (onetool.project / "secrets.yaml").symlink_to(mine)
    mine.chmod(0o644)
    (onetool.project / "stats").mkdir()
    (onetool.project / "stats" / "report.html").symlink_to(mine)
    onetool("doctor", "--fix")
    with onetool.monkeypatch.context() as patch:
        patch.setattr("typer.launch", lambda _: 0)
        onetool("stats", "--open")
    assert (mine.read_text(), mine.stat().st_mode & 0o777) == ("mine\n", 0o644)


def client_servers(onetool: OneTool) -> None:
    client(
        onetool, {"command": "npx", "args": ["-y", "x"], "cwd": "sub", "env": {"NODE_OPTIONS": "--require ./evil.js"}}
    )
    ended = onetool("init", "--from", "cursor", "--yes")
    for line in ("    runs: npx -y x", "    env.NODE_OPTIONS: --require ./evil.js", "    cwd: ${workspace}/sub"):
        assert line in ended.out.splitlines()
    assert loaded(onetool).project_state == "untrusted"
    assert "run onetool trust" in ended.out
    assert onetool("init", "--from", "cursor", "--global", "--yes").code == 0
    assert not (onetool.user / "onetool.yaml").exists()
    assert "env.NODE_OPTIONS: --require ./evil.js" in trust(onetool)
    assert loaded(onetool).servers_of_project == {"db"}


def client_permissions(onetool: OneTool) -> None:
    write(onetool.user / "onetool.yaml", "servers: {github: {command: sh}}\n")
    said = {"permissions": {"allow": ["mcp__github"], "deny": ["mcp__github__drop"]}, "disabledMcpServers": ["github"]}
    for name in ("settings.json", "settings.local.json"):
        write(onetool.cwd / ".claude" / name, json.dumps(said))
    before = (onetool.user / "onetool.yaml").read_text()
    assert "left out: allow github.*" in onetool("init", "--from", "claude-code", "--yes").out
    assert (onetool.user / "onetool.yaml").read_text() == before
    assert yaml.safe_load((onetool.project / "onetool.yaml").read_text())["policy"] == {"deny": ["github.drop"]}
    assert loaded(onetool).config.policy.deny == ()


def client_values(onetool: OneTool) -> None:
    os.environ["MY_GH_TOKEN"] = "users-token"
    try:
        write(onetool.home / ".aws" / "credentials", "AWS=users-token\n")
        client(onetool, {"command": "x", "envFile": "~/.aws/credentials", "env": {"T": "${MY_GH_TOKEN}"}})
        onetool("init", "--from", "cursor", "--yes")
        client(onetool, {"url": "https://h/?t=${MY_GH_TOKEN}"})
        onetool("init", "--from", "cursor", "--yes")
    finally:
        del os.environ["MY_GH_TOKEN"]
    written = everything(onetool.cwd) | everything(onetool.user)
    assert not [path for path, data in written.items() if b"users-token" in data]


def edits(onetool: OneTool) -> None:
    readme = write(onetool.cwd / "README.md", "read me\n")
    add = ("add", "--project", "--no-connect", "--env", "API_KEY=abcdefgh", "mine", "sh")
    for to in ("../README.md", "~/.bash_profile", "~/.onetool/onetool.yaml", "elsewhere.yaml"):
        settings(onetool, f"secrets_file: {to}\n")
        ended = onetool(*add)
        assert (ended.code, "secrets" in ended.err) == (1, True)
    assert readme.read_text() == "read me\n"
    assert not [path for path in (onetool.home / ".bash_profile", onetool.user / "onetool.yaml") if path.exists()]
    settings(onetool, "version: 1\n")
    assert onetool(*add).code == 0
    assert yaml.safe_load((onetool.project / "secrets.yaml").read_text()) == {"API_KEY": "abcdefgh"}
    assert loaded(onetool).project_state == "untrusted"


def commands(onetool: OneTool) -> None:
    write(onetool.user / "onetool.yaml", "servers: {hub: {command: sh}}\n")
    settings(onetool, "servers: {hub: {command: bash}}\n")
    assert str(onetool.user / "onetool.yaml") in onetool("disable", "hub").out
    assert loaded(onetool).config.servers["hub"].enabled is False
    trust(onetool)
    assert str(onetool.project / "onetool.yaml") in onetool("disable", "hub").out


def names(onetool: OneTool) -> None:
    settings(onetool, 'snippets: {a: {body: "1' + " " * 200 + '\\n2\\e[31m"}}\n')
    write(onetool.project / "tools" / "\x1b[2J\u202e" / "x.py", "x\n")
    shown = trust(onetool)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"body: 1[201 blanks, 1 line ends]2\x1b[31m" in shown


ROWS: dict[str, Callable[[OneTool], None]] = {
    "packs": packs,
    "servers": servers,
    "snippets, aliases, projects, prompts": snippets,
    "limits, sanitising, denied tools": limits,
    "allowed tools, roots, internal hosts of `web`, engines, workers, chat": users_alone,
    "secrets": secrets,
    "`${NAME}` in its settings": references,
    "paths in its settings": named_paths,
    "links": links,
    "files in `tmp/`, `logs/`, `stats/`, `sessions/`": state_files,
    "commands that write: reports, `doctor --fix`": report,
    "servers in the repository's files for other clients": client_servers,
    "permissions in other clients' files": client_permissions,
    "`envFile` and `${NAME}` in other clients' files": client_values,
    "your edits of a project you do not trust": edits,
    "the server that `enable`, `disable` and `remove` mean": commands,
    "names and texts": names,
}


@pytest.mark.parametrize("row", ROWS)
def test_a_repository_influences_no_more_than_the_table_says(onetool: OneTool, row: str) -> None:
    ROWS[row](onetool)


def test_the_table_and_the_tests_have_the_same_rows() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    table = re.findall(r"^\| (.+?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert table[0] == "what it brings"
    assert table[1:] == list(ROWS)
