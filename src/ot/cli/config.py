"""onetool config: about the configuration itself."""

from __future__ import annotations

import json

import typer

from ot.cli.terminal import echo


def add_to(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Show things about the configuration.", no_args_is_help=True)
    group.command("schema", epilog="Example: onetool config schema > onetool.schema.json")(schema)
    app.add_typer(group, name="config")


def schema() -> None:
    """Print the JSON schema of onetool.yaml, for editors."""
    from ot.config.schema import json_schema

    echo(json.dumps(json_schema(), indent=2))
