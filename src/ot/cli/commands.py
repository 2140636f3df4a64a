"""All commands of ``onetool``: one file a command, each importing only what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from ot.cli import (
    add,
    approve,
    chat,
    check,
    config,
    dev,
    doctor,
    init,
    listen,
    logs,
    new,
    policy,
    run,
    serve,
    servers,
    stats,
    trust,
)
from ot.cli.terminal import echo

app = typer.Typer(
    name="onetool",
    help="One MCP server, one tool: a model's Python program calls packs of tools, contained.",
    epilog="Example: onetool run 'ot.help()'",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    serve, run, chat, listen, init, add, servers, policy, check, doctor, trust, approve, new, dev, stats,
    logs, config,
):  # fmt: skip
    command.add_to(app)


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
