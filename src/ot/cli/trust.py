"""onetool trust and untrust: which projects may run code on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import confirm, echo

if TYPE_CHECKING:
    from ot.cli.trust_screen import Known
    from ot.config.inventory import Inventory
    from ot.config.paths import Paths
    from ot.config.trust import Trust


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "trust",
        short_help="Show what a project's .onetool/ would run, and allow it.",
        epilog="Example: cd project && onetool trust",
    )(trust)
    app.command("untrust", epilog="Example: onetool untrust ~/project")(untrust)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Directory = Annotated[Path | None, typer.Argument(help="The project's directory; the current one when left out.")]


def trust(
    directory: Directory = None,
    show_list: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a project's .onetool/ would run and which servers would start here, and allow it as it is now."""
    from ot.cli.trust_workspace import ServersHere
    from ot.config.load import load_config
    from ot.config.trust import Trust

    paths = _paths(directory)
    book = Trust(paths.global_dir)
    if show_list:
        _print_list(book, as_json)
        return
    project = _Project.of(paths, book) if paths.project_dir else None
    # With --json a person who is asked must have seen it too.
    if project:
        echo("\n".join(project.lines), err=as_json)
    # A configuration that could not be used is told now, not at the server's next start.
    here = ServersHere.of(load_config(paths, book, trust_project=True), paths)
    if project is None and not here.servers:
        _nothing_to_trust(paths)
    if here.servers:
        echo("\n".join(here.render()), err=as_json)
    agreed = yes or _agreed()
    if agreed and project:
        book.trust(project.inventory)
    if agreed:
        here.record(book)
    place = str(project.inventory.root if project else paths.cwd)
    if as_json:
        told = {"trusted": place if agreed else None, "directory": place, **(project.plain if project else {})}
        echo(json.dumps(told | {"starting_here": here.plain()}))
    elif agreed:
        echo(f"Trusted {place}. Any change to it has to be trusted again.")
    if not agreed:
        echo("Nothing was trusted.", err=True)
        raise typer.Exit(4)


@dataclass(frozen=True, slots=True)
class _Project:
    """What is to be trusted of a project's directory, as a person and as a program are shown it."""

    inventory: Inventory
    lines: list[str]
    plain: dict[str, Any]

    @classmethod
    def of(cls, paths: Paths, book: Trust) -> _Project:
        """Return all that would run, or what has changed where it was trusted before."""
        from ot.cli.trust_screen import changes_of, lines_of, lines_of_changes, screen_of
        from ot.config.inventory import take_inventory
        from ot.visible_text import printable

        directory = paths.project_dir or paths.cwd
        inventory, before, known = take_inventory(directory), book.before(directory), _known(paths)
        screen = screen_of(inventory, known)
        changes = changes_of(inventory, before, known) if before else {}
        # The difference says it all only where it can be told what would have run before.
        lines = lines_of_changes(changes) if changes and changes["diff"] is not None else lines_of(screen)
        return cls(inventory, [printable(str(inventory.root)), *lines], {**screen, "since": changes or None})


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
