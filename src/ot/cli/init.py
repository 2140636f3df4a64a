"""onetool init: a commented configuration to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ot.cli.terminal import echo


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "init",
        short_help="Write a commented .onetool/onetool.yaml, or take over servers.",
        epilog="Example: onetool init && onetool check",
    )(init)


def complete_clients(incomplete: str) -> list[str]:
    """Return the clients whose names begin like this."""
    from ot.config.clients.take_over import CLIENTS

    return [name for name in (*CLIENTS, "all") if name.startswith(incomplete)]


def init(
    use_global: Annotated[bool, typer.Option("--global", help="Write ~/.onetool/ instead of ./.onetool/.")] = False,
    from_clients: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="CLIENT",
            help="Take over the servers of another client, or of all.",
            autocompletion=complete_clients,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing what --from found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a commented .onetool/onetool.yaml with its schema, and trust what was written.

    With --from, servers of other clients are added: those of a client's own file to ~/.onetool/, those of a
    repository's file to the project's, which that does not trust. CLIENT is claude-code, claude-desktop, cursor,
    vscode, codex, windsurf, zed or all.
    """
    if from_clients:
        from ot.cli.init_from import take_over

        take_over(from_clients, use_global=use_global, yes=yes, as_json=as_json)
        return
    from ot.config.inventory import take_inventory
    from ot.config.new_directory import write_new_directory
    from ot.config.paths import CONFIG_FILE, FOLDER, Paths
    from ot.config.template import template
    from ot.config.trust import Trust
    from ot.errors import ConfigError

    paths = Paths.find()
    directory = paths.global_dir if use_global else paths.cwd / FOLDER
    if paths.ignored and not use_global:
        raise ConfigError(f"nothing was written: {paths.ignored}")
    if (directory / CONFIG_FILE).exists():
        raise ConfigError(f"{directory / CONFIG_FILE} exists already and was left as it is")
    foreign = not use_global and directory.exists() and any(directory.iterdir())
    write_new_directory(directory, template())
    # What somebody else put there was not written by this command: it stays inert until the user has looked at it.
    trusted = not use_global and not foreign and directory != paths.global_dir
    if trusted:
        Trust(paths.global_dir).trust(take_inventory(directory))
    _tell(directory, trusted, foreign, as_json)


def _tell(directory: Path, trusted: bool, foreign: bool, as_json: bool) -> None:
    if as_json:
        echo(json.dumps({"directory": str(directory), "trusted": trusted}))
        return
    echo(f"Wrote {directory / 'onetool.yaml'}; every setting is in it, commented out.")
    if foreign:
        echo("Other files were there before: look at them, then run onetool trust.")
    echo("Next: onetool check")
