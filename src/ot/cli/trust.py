"""onetool trust and untrust: which projects may run code on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import DENIED, NOT_FOUND, OK
from ot.cli.terminal import confirm, echo, echo_either, echo_json, fail
from ot.cli.terminal.options import AsJson
from ot.visible_text import printable

if TYPE_CHECKING:
    from ot.cli.terminal.trust_screen import Known
    from ot.config.inventory import Inventory
    from ot.config.load import Loaded
    from ot.config.paths import Paths
    from ot.config.trust import ServerHere, Trust


Directory = Annotated[Path | None, typer.Argument(help="The project's directory; the current one by default.")]


def trust(
    directory: Directory = None,
    show_list: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a project's .onetool/ would run and which servers would start here, and allow it as it is now."""
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
    here = _ServersHere.of(load_config(paths, book, trust_project=True), paths)
    if project is None and not here.servers:
        why = f"{paths.cwd} has no .onetool directory of its own, and no server of yours starts in it"
        fail(paths.ignored or why, NOT_FOUND)
    if here.servers:
        echo("\n".join(here.render()), err=as_json)
    agreed = yes or confirm("Trust this, as it is now?", "trust")
    if agreed and project:
        book.trust(project.inventory)
    if agreed:
        here.record(book)
    place = str(project.inventory.root if project else paths.cwd)
    if as_json:
        told = {"trusted": place if agreed else None, "directory": place, **(project.plain if project else {})}
        echo_json(told | {"starting_here": here.plain()})
    elif agreed:
        echo(f"Trusted {place}. Any change to it has to be trusted again.")
    if not agreed:
        echo("Nothing was trusted.", err=True)
        raise typer.Exit(DENIED)


@dataclass(frozen=True, slots=True)
class _Project:
    """What is to be trusted of a project's directory, as a person and as a program are shown it."""

    inventory: Inventory
    lines: list[str]
    plain: dict[str, Any]

    @classmethod
    def of(cls, paths: Paths, book: Trust) -> _Project:
        """Return all that would run, or what has changed where it was trusted before."""
        from ot.cli.terminal.trust_screen import changes_of, lines_of, lines_of_changes, screen_of
        from ot.config.inventory import take_inventory

        directory = paths.project_dir or paths.cwd
        inventory, before, known = take_inventory(directory), book.before(directory), _read_known(paths)
        screen = screen_of(inventory, known)
        changes = changes_of(inventory, before, known) if before else {}
        # The difference says it all only where it can be told what would have run before.
        lines = lines_of_changes(changes) if changes and changes["diff"] is not None else lines_of(screen)
        return cls(inventory, [printable(str(inventory.root)), *lines], {**screen, "since": changes or None})


@dataclass(frozen=True, slots=True)
class _ServersHere:
    """The servers whose ``cwd`` is in one workspace: their command lines, and what launchers would obey there."""

    workspace: Path
    lines: Mapping[str, str]
    servers: Mapping[str, ServerHere]

    @classmethod
    def of(cls, loaded: Loaded, paths: Paths) -> _ServersHere:
        """Return those of this configuration."""
        import shlex

        from ot.proxied.spec import servers_here

        servers = servers_here(loaded, paths)
        given = loaded.config.servers
        lines = {name: shlex.join([given[name].command, *given[name].args]) for name in servers}
        return cls(paths.cwd, lines, servers)

    def render(self) -> Iterator[str]:
        """Yield what a person should look at."""
        yield f"servers that start in {printable(str(self.workspace))} ({len(self.servers)})"
        yield from (f"  {printable(name)}  {printable(line)}" for name, line in self.lines.items())
        files = {name: text for server in self.servers.values() for name, text in server.files.items()}
        yield f"what their launchers obey or execute there ({len(files)})"
        yield from (f"  {printable(name)}  {text.rpartition(':')[2][:16]}" for name, text in sorted(files.items()))

    def plain(self) -> dict[str, Any]:
        """Return the same for a program."""
        return {name: {"runs": line, "obeys": dict(self.servers[name].files)} for name, line in self.lines.items()}

    def record(self, book: Trust) -> None:
        """Let these servers start here, and no others."""
        if self.servers or book.servers_in(self.workspace):
            book.trust_servers_in(self.workspace, self.servers)


def untrust(directory: Directory = None, as_json: AsJson = False) -> None:
    """Forget that a project was trusted."""
    from ot.config.paths import FOLDER
    from ot.config.trust import Trust

    paths = _paths(directory)
    project = paths.cwd / FOLDER
    known = Trust(paths.global_dir).untrust(project)
    said = f"{project} is no longer trusted." if known else f"{project} was not trusted."
    echo_either(as_json, {"untrusted": str(project), "known": known}, [said])
    raise typer.Exit(OK if known else NOT_FOUND)


def _paths(directory: Path | None) -> Paths:
    from ot.config.paths import Paths

    here = Paths.find()
    return Paths.of(directory.absolute(), here.global_dir) if directory else here


def _read_known(paths: Paths) -> Known:
    """Return what exists without the project, which the project may replace."""
    from ot.build import known_packs
    from ot.cli.terminal.trust_screen import Known
    from ot.config.load import load_config
    from ot.config.trust import Trust
    from ot.registry.extension_source import extensions_of_user

    alone = replace(paths, project_dir=None)
    loaded = load_config(alone, Trust(paths.global_dir))
    return Known(loaded.config, known_packs(loaded, extensions_of_user(paths.global_dir)))


def _print_list(book: Trust, as_json: bool) -> None:
    projects = {path: (one.time, "files", len(one.files)) for path, one in book.list().items()}
    workspaces = {path: (one.time, "servers", sorted(one.servers)) for path, one in book.list_workspaces().items()}
    found = [*projects.items(), *workspaces.items()]
    rows: list[dict[str, Any]] = [{"directory": str(path), "time": at, key: what} for path, (at, key, what) in found]
    echo_either(as_json, rows, map(_list_line, rows))
    if not rows and not as_json:
        echo("Nothing is trusted.", err=True)


def _list_line(row: Mapping[str, Any]) -> str:
    what = f"{row['files']} files" if "files" in row else f"servers that start there: {', '.join(row['servers'])}"
    return f"{row['directory']}  {what}, trusted {row['time']}"
