"""onetool init: a commented configuration to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

IGNORED = "tmp/\nlogs/\nstats/\nsessions/\nsecrets*.yaml\n"
"""What of a .onetool directory does not belong into version control."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("init", epilog="Example: onetool init && onetool check")(init)


def init(
    use_global: Annotated[bool, typer.Option("--global", help="Write ~/.onetool/ instead of ./.onetool/.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a commented .onetool/onetool.yaml with its schema, and trust what was written."""
    from ot.config.inventory import take_inventory
    from ot.config.paths import CONFIG_FILE, FOLDER, Paths
    from ot.config.schema import json_schema
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
    _write(directory, {CONFIG_FILE: template(), "onetool.schema.json": json.dumps(json_schema(), indent=2) + "\n"})
    # What somebody else put there was not written by this command: it stays inert until the user has looked at it.
    trusted = not use_global and not foreign and directory != paths.global_dir
    if trusted:
        Trust(paths.global_dir).trust(take_inventory(directory))
    _tell(directory, trusted, foreign, as_json)


def _write(directory: Path, files: dict[str, str]) -> None:
    from ot.errors import ConfigError

    try:
        _write_new(directory, files)
    except OSError as error:
        raise ConfigError(f"{error.filename or directory} cannot be written: {error.strerror}") from None


def _write_new(directory: Path, files: dict[str, str]) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in files.items():
        with (directory / name).open("x", encoding="utf-8") as file:
            file.write(text)
    ignored = directory / ".gitignore"
    if not ignored.exists():
        ignored.write_text(IGNORED, encoding="utf-8")


def _tell(directory: Path, trusted: bool, foreign: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"directory": str(directory), "trusted": trusted}))
        return
    typer.echo(f"Wrote {directory / 'onetool.yaml'}; every setting is in it, commented out.")
    if foreign:
        typer.echo("Other files were there before: look at them, then run onetool trust.")
    typer.echo("Next: onetool check")
