"""All commands of ``onetool`` as one application, built from their table; each imports only what it needs."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ot import extras
from ot.cli.command_table import SUMMARY, all_commands, read_families
from ot.cli.overview import overview
from ot.cli.terminal import echo
from ot.errors import MissingExtra


class GroupedCommands(TyperGroup):
    """Prints the same page for ``--help`` as is printed where this library is not imported."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        formatter.write(overview())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; of one that an extra brings, say which one."""
        if args and (extra := extras.COMMANDS.get(args[0])) and self.get_command(ctx, args[0]) is None:
            raise MissingExtra(f"onetool {args[0]}", extra)
        return super().resolve_command(ctx, args)


def build_app(first_word: str = "") -> typer.Typer:
    """Return the application with every command, or only those that begin with *first_word*: their imports add up."""
    rows = [row for rows in all_commands().values() for row in rows]
    settings: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}
    app = typer.Typer(name="onetool", cls=GroupedCommands, pretty_exceptions_enable=False, **settings)
    app.callback(help=SUMMARY)(_before_any_command)
    said, families = read_families(), dict[str, typer.Typer]()
    for name, function, summary, example in [row for row in rows if row[0].split()[0] == first_word] or rows:
        family, _, last = name.rpartition(" ")
        if family and family not in families:
            families[family] = typer.Typer(help=said.get(family, ""), epilog=f"Example: {example}", **settings)
            app.add_typer(families[family], name=family)
        # What follows the command of a server belongs to it, even if it looks like an option.
        context = {"allow_interspersed_args": name != "add"}
        where = families[family] if family else app
        register = where.command(last, epilog=f"Example: {example}", short_help=summary, context_settings=context)
        register(_function(function))
    return app


def _function(place: str) -> Any:
    file, _, name = place.partition(":")
    # Ours are files of this package; those of plugins say which package it is.
    return getattr(import_module(file if "." in file else f"ot.cli.{file}"), name)


def _version(value: bool) -> None:
    if value:
        from ot.version import installed_version

        echo(installed_version())
        raise typer.Exit


def _all(value: bool) -> None:
    if value:
        echo(overview(every=True), nl=False)
        raise typer.Exit


def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option("--all", callback=_all, is_eager=True, help="Show every command, not only the everyday ones."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""
