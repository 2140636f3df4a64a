"""All commands of ``onetool``: one file a command, or a few that belong together, each importing only what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from ot.cli.add import add
from ot.cli.approve import approve
from ot.cli.chat import chat
from ot.cli.check import check
from ot.cli.connect import connect, disconnect
from ot.cli.dev import dev
from ot.cli.doctor import doctor
from ot.cli.init import init, schema
from ot.cli.listen import listen
from ot.cli.logs import logs
from ot.cli.new import pack
from ot.cli.policy import allow, ask, deny
from ot.cli.run import run
from ot.cli.serve import serve
from ot.cli.servers import disable, enable, remove, servers
from ot.cli.stats import stats
from ot.cli.terminal import echo
from ot.cli.trust import trust, untrust

COMMANDS = (
    (serve, "claude mcp add onetool -- onetool serve", None),
    (run, """onetool run 'file.search(pattern="TODO", path="src")'""", None),
    (
        chat,
        "onetool chat --provider ollama --packs file 'what is in this directory?'",
        "Talk to a model that can use your tools.",
    ),
    (
        listen,
        "onetool listen --orders 'list my tools | turn on the light' orders.wav",
        "Answer what is said, with your tools.",
    ),
    (init, "onetool init && onetool check", "Write a commented .onetool/onetool.yaml, or take over servers."),
    (connect, "onetool connect claude-code", "Add OneTool to the settings of a client."),
    (disconnect, "onetool disconnect claude-code", "Remove OneTool from the settings of a client."),
    (add, "onetool add clock uvx mcp-server-time", "Add an MCP server whose tools become a pack."),
    (servers, "onetool servers --json", None),
    (remove, "onetool remove clock", None),
    (enable, "onetool enable clock", None),
    (disable, "onetool disable clock", None),
    (allow, "onetool allow 'github.search_*'", None),
    (ask, "onetool ask '*.delete_*'", None),
    (deny, "onetool deny 'vault.*'", None),
    (check, "onetool check --json", "Start every pack and server, and say what is wrong."),
    (doctor, "onetool doctor --fix", "Look at everything a run needs, and say what to do."),
    (trust, "cd project && onetool trust", "Show what a project's .onetool/ would run, and allow it."),
    (untrust, "onetool untrust ~/project", None),
    (approve, "onetool approve github", "Show what proxied servers changed, and approve it."),
    (
        dev,
        """onetool dev .onetool/tools/weather/weather_tools.py 'hello(name="you")'""",
        "Call a tool of a pack, again whenever its file changes.",
    ),
    (stats, "onetool stats --period week --html stats.html --open", None),
    (logs, "onetool logs -f --level WARNING", None),
)
"""Each command with an example, and what the list of commands says of it where its help begins longer."""

app = typer.Typer(
    name="onetool",
    help="One MCP server, one tool: a model's Python program calls packs of tools, contained.",
    epilog="Example: onetool run 'ot.help()'",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for function, example, short_help in COMMANDS:
    # What follows the command of a server belongs to it, even if it looks like an option.
    settings = {"allow_interspersed_args": function is not add}
    app.command(epilog=f"Example: {example}", short_help=short_help, context_settings=settings)(function)

new_group = typer.Typer(
    help="Write something new to start from.", epilog="Example: onetool new pack weather", no_args_is_help=True
)
new_group.command(epilog="Example: onetool new pack weather")(pack)
app.add_typer(new_group, name="new")
config_group = typer.Typer(help="Show things about the configuration.", no_args_is_help=True)
config_group.command(epilog="Example: onetool config schema > onetool.schema.json")(schema)
app.add_typer(config_group, name="config")


def _version(value: bool) -> None:
    if value:
        from ot.version import installed_version

        echo(installed_version())
        raise typer.Exit


@app.callback()
def onetool(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """One MCP server, one tool: a model's Python program calls packs of tools, contained."""
