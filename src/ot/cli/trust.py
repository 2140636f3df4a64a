"""onetool trust and untrust: which projects may run code on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import confirm, echo

if TYPE_CHECKING:
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
    """Show what a project's .onetool/ would run, and which servers would start here; allow it as it is now."""
    from ot.cli.trust_workspace import ServersHere
    from ot.config.inventory import render_inventory, take_inventory
    from ot.config.load import load_config
    from ot.config.trust import Trust

    paths = _paths(directory)
    book = Trust(paths.global_dir)
    if show_list:
        _print_list(book, as_json)
        return
    inventory = take_inventory(paths.project_dir) if paths.project_dir else None
    if inventory and not as_json:
        echo("\n".join(render_inventory(inventory)))
    # A configuration that could not be used is told now, not at the server's next start.
    here = ServersHere.of(load_config(paths, book, trust_project=True), paths)
    if inventory is None and not here.servers:
        _nothing_to_trust(paths)
    if not as_json:
        echo("\n".join(here.render()), nl=bool(here.servers))
    if not yes and not _agreed():
        echo("Nothing was trusted.", err=True)
        raise typer.Exit(4)
    if inventory:
        book.trust(inventory)
    here.record(book)
    trusted = str(inventory.root if inventory else paths.cwd)
    if as_json:
        files = dict(inventory.hashes) if inventory else {}
        echo(json.dumps({"trusted": trusted, "files": files, "servers": sorted(here.servers)}))
    else:
        echo(f"Trusted {trusted}. Any change to it has to be trusted again.")


def untrust(directory: Directory = None, as_json: AsJson = False) -> None:
    """Forget that a project was trusted."""
    from ot.config.paths import FOLDER
    from ot.config.trust import Trust

    paths = _paths(directory)
    project = paths.cwd / FOLDER
    known = Trust(paths.global_dir).untrust(project)
    if as_json:
        echo(json.dumps({"untrusted": str(project), "known": known}))
    else:
        echo(f"{project} is no longer trusted." if known else f"{project} was not trusted.")
    raise typer.Exit(0 if known else 3)


def _paths(directory: Path | None) -> Paths:
    from ot.config.paths import Paths

    here = Paths.find()
    return Paths.of(directory.absolute(), here.global_dir) if directory else here


def _nothing_to_trust(paths: Paths) -> None:
    why = f"{paths.cwd} has no .onetool directory of its own, and no server of yours starts in it"
    echo(f"onetool: {paths.ignored or why}", err=True)
    raise typer.Exit(3)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        echo("Not asking without a terminal: add --yes to trust it.", err=True)
        return False
    return confirm("Trust this, as it is now?")


def _print_list(book: Trust, as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        *({"directory": str(path), "time": one.time, "files": len(one.files)} for path, one in book.list().items()),
        *(
            {"directory": str(path), "time": one.time, "servers": sorted(one.servers)}
            for path, one in book.list_workspaces().items()
        ),
    ]
    if as_json:
        echo(json.dumps(rows))
        return
    for row in rows:
        what = f"{row['files']} files" if "files" in row else f"servers that start there: {', '.join(row['servers'])}"
        echo(f"{row['directory']}  {what}, trusted {row['time']}")
    if not rows:
        echo("Nothing is trusted.", err=True)
