"""Every command of ``onetool`` under its group. ``--help`` is written from this, so it imports nothing but hooks."""

from __future__ import annotations

import sys

from ot import hooks

type Row = tuple[str, str, str, str]

SUMMARY = "One MCP server, one tool: a model's program calls packs of tools, contained."

COMMANDS: dict[str, tuple[Row, ...]] = {
    "Start": (
        ("demo", "demo:demo", "See in a minute what it does; nothing of yours is used.", "onetool demo --fast"),
        (
            "init",
            "init:init",
            "Write a short .onetool/onetool.yaml, or take over servers.",
            "onetool init --from claude-code --name git=vcs",
        ),
        ("connect", "connect:connect", "Add OneTool to the settings of a client.", "onetool connect cursor --take-out"),
        (
            "disconnect",
            "connect:disconnect",
            "Remove OneTool from the settings of a client.",
            "onetool disconnect claude-code",
        ),
        (
            "serve",
            "serve:serve",
            "Serve MCP on standard input and output, or over HTTP.",
            "claude mcp add onetool -- onetool serve",
        ),
        ("ps", "ps:ps", "Show the server that your clients share.", "onetool ps"),
        ("stop", "stop:stop", "End the server that your clients share.", "onetool stop"),
        (
            "worker",
            "worker:worker",
            "Carry out the background runs of a team's server.",
            "onetool worker --probes 8001",
        ),
    ),
    "Everyday": (
        (
            "run",
            "run:run",
            "Run a program and print what it returns.",
            """onetool run 'file.search(pattern="TODO", path="src")'""",
        ),
        ("answer", "answer:answer", "Answer what a run asks, in any terminal.", "onetool answer"),
        (
            "watch",
            "watch:watch",
            "Show what runs do while they do it, and cancel them.",
            "onetool watch --json | jq .tool",
        ),
        ("list", "tools:list_", "List the packs, or the tools of one.", "onetool list --tokens"),
        ("search", "tools:search", "Find tools by the words of a task.", "onetool search read lines of a file"),
        ("show", "show:show", "Show a tool: signature, description, source, policy.", "onetool show file.read"),
    ),
    "Servers": (
        (
            "add",
            "add:add",
            "Add an MCP server or an API whose tools become a pack.",
            "onetool add clock uvx mcp-server-time",
        ),
        ("servers", "servers:servers", "List the MCP servers, and whether each can be started.", "onetool servers"),
        ("enable", "servers:enable", "Use a server that was disabled.", "onetool enable clock"),
        (
            "disable",
            "servers:disable",
            "Keep a server in the configuration, and do not use it.",
            "onetool disable clock",
        ),
        ("remove", "servers:remove", "Take a server out of the configuration.", "onetool remove clock"),
        (
            "approve",
            "approve:approve",
            "Show what servers changed in their tools, and approve it.",
            "onetool approve github",
        ),
    ),
    "Logins": (
        (
            "auth login",
            "auth:login",
            "Log in at an MCP server that wants OAuth.",
            "onetool auth login notion",
        ),
        (
            "auth status",
            "auth:status",
            "Show the logins at MCP servers, and when they expire.",
            "onetool auth status",
        ),
        ("auth logout", "auth:logout", "Revoke a login, and forget it.", "onetool auth logout notion"),
    ),
    "Policy and trust": (
        ("allow", "policy:allow", "Let tools run without a question.", "onetool allow 'github.search_*'"),
        ("ask", "policy:ask", "Have a question asked before tools run.", "onetool ask '*.delete_*'"),
        ("deny", "policy:deny", "Let no program call tools.", "onetool deny 'vault.*'"),
        (
            "trust",
            "trust:trust",
            "Show what a project's .onetool/ would run, and allow it.",
            "cd project && onetool trust",
        ),
        ("untrust", "trust:untrust", "Forget that a project was trusted.", "onetool untrust ~/project"),
        ("token", "token:token", "Make a token for a server that a team shares.", "onetool token ci --write"),
    ),
    "Packs": (
        ("new pack", "new:pack", "Write a pack with one tool, to start from.", "onetool new pack weather"),
        (
            "dev",
            "dev:dev",
            "Call a tool of a pack, again whenever its file changes.",
            """onetool dev .onetool/tools/weather/weather_tools.py 'hello(name="you")'""",
        ),
        (
            "prefetch",
            "prefetch:prefetch",
            "Install what packs need, before this machine goes offline.",
            "onetool prefetch web data",
        ),
    ),
    "Look inside": (
        ("check", "check:check", "Start every pack and server, and say what is wrong.", "onetool check --json"),
        ("doctor", "doctor:doctor", "Look at everything a run needs, and say what to do.", "onetool doctor --fix"),
        (
            "stats",
            "stats:stats",
            "Show what was called, how long it took, and what it saved.",
            "onetool stats --period week --html stats.html --open",
        ),
        (
            "runs list",
            "runs:list_",
            "List runs in the background, and calls of unknown effect.",
            "onetool runs list",
        ),
        ("runs show", "runs:show", "Show what a run did, and what nobody knows.", "onetool runs show 1f0c2b7a9d3e4f56"),
        (
            "runs follow",
            "runs:follow",
            "Show what a run does, until it has ended.",
            "onetool runs follow 1f0c2b7a9d3e4f56",
        ),
        ("runs cancel", "runs:cancel", "Stop a run in the background.", "onetool runs cancel 1f0c2b7a9d3e4f56"),
        ("logs", "logs:logs", "Show the server's log.", "onetool logs -f --level WARNING"),
        (
            "config schema",
            "init:schema",
            "Print the JSON schema of onetool.yaml, for editors.",
            "onetool config schema > onetool.schema.json",
        ),
        (
            "config migrate",
            "migrate:migrate",
            "Rewrite settings that are in an older form.",
            "onetool config migrate --dry-run",
        ),
    ),
}
"""By group: the command, its function as ``file:name`` in this folder, one line about it, and an example."""

DATA = "commands.ini"
"""The file in a plugin's package that has its rows."""

EVERYDAY = frozenset((
    "init", "connect", "serve", "run", "answer", "list", "search", "show", "add", "servers", "auth login", "allow",
    "trust", "doctor", "logs",
))  # fmt: skip
"""What ``onetool --help`` names; ``--all`` names the rest too."""

FAMILIES = {
    "auth": "Log in at MCP servers that want OAuth, and out again.",
    "runs": "Show what runs did, and look after those in the background.",
    "new": "Write something new to start from.",
    "config": "Show the configuration's schema, or bring it up to date.",
}
"""What is said of the first word of commands that have two."""


def all_commands() -> dict[str, tuple[Row, ...]]:
    """Return the rows by group, those of plugins below ours; a name that is taken is left out."""
    groups = {group: list(rows) for group, rows in COMMANDS.items()}
    known = {row[0] for rows in COMMANDS.values() for row in rows}
    for hook in hooks.hooks(hooks.COMMANDS):
        for name, row in hooks.read_sections(_written_by(hook.module)).items():
            if name not in known and "function" in row:
                known.add(name)
                shown = (name, row["function"], row.get("summary", ""), row.get("example", f"onetool {name}"))
                groups.setdefault(row.get("group", "More"), []).append(shown)
    return {group: tuple(rows) for group, rows in groups.items()}


def _written_by(package: str) -> str:
    """Return the rows that the plugin's *package* has as data, found as an import would find it, but not imported."""
    for place in sys.path:
        try:
            with open(f"{place or '.'}/{package.replace('.', '/')}/{DATA}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib's import takes longer than everything here
                return file.read()
        except OSError:
            continue
    return ""
