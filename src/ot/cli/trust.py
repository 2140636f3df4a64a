"""onetool trust and untrust: which projects may run code on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ot.cli.trust_screen import Known
    from ot.config.paths import Paths
    from ot.config.trust import Trust


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("trust", epilog="Example: cd project && onetool trust")(trust)
    app.command("untrust", epilog="Example: onetool untrust ~/project")(untrust)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Directory = Annotated[Path | None, typer.Argument(help="The project's directory; the current one when left out.")]


def trust(
    directory: Directory = None,
    show_list: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a project's .onetool/ would run, or what has changed in it, and allow it as it is now."""
    from ot.cli.trust_screen import changes_of, lines_of, lines_of_changes, screen_of
    from ot.config.inventory import take_inventory
    from ot.config.load import load_config
    from ot.config.snapshot import printable
    from ot.config.trust import Trust

    paths = _paths(directory)
    book = Trust(paths.global_dir)
    if show_list:
        _print_list(book, as_json)
        return
    inventory, before = take_inventory(_project(paths)), book.before(_project(paths))
    known = _known(paths)
    screen = screen_of(inventory, known)
    changes = changes_of(inventory, before, known) if before else {}
    # The difference says it all only where it can be told what would have run before.
    lines = lines_of_changes(changes) if changes and changes["diff"] is not None else lines_of(screen)
    # With --json a person who is asked must have seen it too.
    typer.echo("\n".join([printable(str(inventory.root)), *lines]), err=as_json)
    # A configuration that could not be used is told now, not at the server's next start.
    load_config(paths, book, trust_project=True)
    agreed = yes or _agreed()
    if agreed:
        book.trust(inventory)
    if as_json:
        told = {"trusted": str(inventory.root) if agreed else None, "directory": str(inventory.root), **screen}
        typer.echo(json.dumps(told | {"since": changes or None}))
    elif agreed:
        typer.echo(f"Trusted {printable(str(inventory.root))}. Any change to it has to be trusted again.")
    if not agreed:
        typer.echo("Nothing was trusted.", err=True)
        raise typer.Exit(4)


def untrust(directory: Directory = None, as_json: AsJson = False) -> None:
    """Forget that a project was trusted."""
    from ot.config.paths import FOLDER
    from ot.config.trust import Trust

    paths = _paths(directory)
    project = paths.cwd / FOLDER
    known = Trust(paths.global_dir).untrust(project)
    if as_json:
        typer.echo(json.dumps({"untrusted": str(project), "known": known}))
    else:
        typer.echo(f"{project} is no longer trusted." if known else f"{project} was not trusted.")
    raise typer.Exit(0 if known else 3)


def _paths(directory: Path | None) -> Paths:
    from ot.config.paths import Paths

    here = Paths.find()
    return Paths.of(directory.absolute(), here.global_dir) if directory else here


def _known(paths: Paths) -> Known:
    """Return what there is without the project, which it may stand in for."""
    from ot.app import known_packs
    from ot.cli.trust_screen import Known
    from ot.config.load import load_config
    from ot.config.trust import Trust
    from ot.registry.extension_source import extensions_of_user

    alone = replace(paths, project_dir=None)
    loaded = load_config(alone, Trust(paths.global_dir))
    return Known(loaded.config, known_packs(loaded, extensions_of_user(paths.global_dir)))


def _project(paths: Paths) -> Path:
    if paths.project_dir is None:
        typer.echo(f"onetool: {paths.ignored or f'{paths.cwd} has no .onetool directory of its own'}", err=True)
        raise typer.Exit(3)
    return paths.project_dir


def _agreed() -> bool:
    if not sys.stdin.isatty():
        typer.echo("Not asking without a terminal: add --yes to trust it.", err=True)
        return False
    return typer.confirm("Trust this, as it is now?", err=True)


def _print_list(book: Trust, as_json: bool) -> None:
    entries = book.list()
    if as_json:
        rows = [
            {"directory": str(path), "time": record.time, "files": len(record.files)}
            for path, record in entries.items()
        ]
        typer.echo(json.dumps(rows))
        return
    for path, record in entries.items():
        typer.echo(f"{path}  {len(record.files)} files, trusted {record.time}")
    if not entries:
        typer.echo("Nothing is trusted.", err=True)
