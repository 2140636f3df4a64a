"""onetool connect and disconnect: OneTool entered in the files of other clients, and taken out again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.init import complete_clients
from ot.cli.terminal import confirm, echo, echo_either, fail
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.clients.connection import ClientChange, EntryWanted
    from ot.config.clients.connection_notes import ConnectionNotes
    from ot.config.clients.known_clients import Client
    from ot.config.clients.server_entry import Surroundings
    from ot.config.paths import Paths

Clients = Annotated[
    list[str] | None,
    typer.Argument(metavar="CLIENT", help="claude-code, cursor, codex and so on.", autocompletion=complete_clients),
]
All = Annotated[bool, typer.Option("--all", help="Every client that is found on this machine.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the difference, and write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")]
Name = Annotated[str, typer.Option("--name", help="What OneTool is called in the client, if not onetool.")]


def connect(
    clients: Clients = None,
    all_clients: All = False,
    take_out: Annotated[
        bool | None,
        typer.Option("--take-out/--leave", help="Whether to take the servers that OneTool holds out of the client."),
    ] = None,
    cwd: Annotated[str, typer.Option("--cwd", help="The directory that OneTool works in, whatever the client.")] = "",
    name: Name = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    show_block: Annotated[bool, typer.Option("--print", help="Print what to paste, and write nothing.")] = False,
    show_link: Annotated[bool, typer.Option("--link", help="Print a link that enters OneTool.")] = False,
    as_json: AsJson = False,
) -> None:
    """Enter OneTool in the settings of a client, after showing the difference.

    CLIENT is claude-code, claude-desktop, cursor, vscode, codex, windsurf, zed or gemini-cli. Comments, order and all
    other settings stay as they are; onetool disconnect restores the file.
    """
    from ot.cli.terminal.client_screen import cost_rows, show_costs, show_pasted

    desk = _Desk.here(clients, all_clients, wanted := _wanted(cwd, name))
    if show_block or show_link:
        show_pasted(desk.clients, desk.around, wanted, as_json=as_json, only_link=show_link)
        return
    asks = not (dry_run or yes or as_json)
    plans = [plan for each in desk.clients if (plan := _plan(desk, each, take_out, asks=asks))]
    written = _carry_out(desk, [plan.change for plan in plans], "connected", dry_run=dry_run, yes=yes, as_json=as_json)
    rows = cost_rows(plans, desk.paths)
    if as_json:
        told = [each | row for each, row in zip(written, rows, strict=True)]
        echo_either(True, {"clients": told, "problems": desk.problems}, ())
    else:
        show_costs(rows)
    raise typer.Exit(1 if desk.problems else 0)


def disconnect(
    clients: Clients = None,
    all_clients: All = False,
    name: Name = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take OneTool out of the settings of a client, after showing the difference.

    A file that nobody has changed since gets its old bytes back; of any other one only OneTool's entry is removed.
    """
    from ot.config.clients.connection import plan_disconnect

    desk = _Desk.here(clients, all_clients, None)
    changes = [
        change
        for each in desk.clients
        if (change := desk.attempt(lambda each=each: plan_disconnect(each, desk.around, desk.notes, name)))
    ]
    written = _carry_out(desk, changes, "disconnected", dry_run=dry_run, yes=yes, as_json=as_json)
    if as_json:
        echo_either(True, {"clients": written, "problems": desk.problems}, ())
    raise typer.Exit(1 if desk.problems else 0)


# ---------------------------------------------------------------- what is asked for


@dataclass(frozen=True)
class _Desk:
    """The clients that are meant, and what working on their files needs."""

    clients: Sequence[Client]
    around: Surroundings
    paths: Paths
    notes: ConnectionNotes
    wanted: EntryWanted | None
    problems: list[str] = field(default_factory=list[str])

    @classmethod
    def here(cls, names: Sequence[str] | None, all_clients: bool, wanted: EntryWanted | None) -> _Desk:
        from ot.config.clients.connection_notes import ConnectionNotes
        from ot.config.clients.take_over import surroundings
        from ot.config.paths import Paths

        paths = Paths.find()
        around = surroundings(paths.cwd)
        return cls(_chosen(names or (), all_clients, around), around, paths, ConnectionNotes(paths), wanted)

    def attempt[T](self, work: Callable[[], T]) -> T | None:
        """Return what *work* returns; what is wrong with one client's file keeps no other from being done."""
        from ot.errors import ConfigError

        try:
            return work()
        except ConfigError as error:
            self.problems.append(str(error))
            echo(f"onetool: {error}", err=True)
            return None


def _chosen(names: Sequence[str], all_clients: bool, around: Surroundings) -> list[Client]:
    from ot.cli.init import chosen_clients
    from ot.config.clients.connection import installed_clients
    from ot.config.clients.known_clients import CLIENTS

    if all_clients or "all" in names:
        found = installed_clients(around)
        if not found:
            fail(f"none of the clients is on this machine: {', '.join(CLIENTS)}", 3)
        return [CLIENTS[name] for name in found]
    if not names:
        found = installed_clients(around)
        raise typer.BadParameter(f"name a client, or --all; found here: {', '.join(found) or 'none'}")
    return [CLIENTS[name] for name in chosen_clients(names)]


def _wanted(cwd: str, name: str) -> EntryWanted:
    from ot.config.clients.connection import EntryWanted
    from ot.config.clients.launcher import this_launch_command

    if cwd and not Path(cwd).expanduser().is_dir():
        raise typer.BadParameter(f"there is no directory {cwd}")
    env = {"OT_CWD": str(Path(cwd).expanduser().absolute())} if cwd else {}
    return EntryWanted(this_launch_command(), env, name)


# ---------------------------------------------------------------- planning, showing, writing


@dataclass(frozen=True)
class ClientPlan:
    """The change of one client's file, and what was in it."""

    change: ClientChange
    servers: tuple[str, ...]
    """Those in the file, OneTool aside."""
    held: Mapping[str, str]
    """Those that OneTool has too, with their names there."""
    was_entered: bool


def _plan(desk: _Desk, client: Client, take_out: bool | None, *, asks: bool) -> ClientPlan | None:
    return desk.attempt(lambda: _planned(desk, client, take_out, asks=asks))


def _planned(desk: _Desk, client: Client, take_out: bool | None, *, asks: bool) -> ClientPlan:
    from ot.config.clients.client_file import read_from_disk, server_list
    from ot.config.clients.connection import own_name_in, plan_connect
    from ot.config.clients.held_servers import held_servers

    assert desk.wanted
    listed = server_list(client, read_from_disk(client.own_file(desk.around).file), desk.around)
    held = held_servers(client, listed, desk.around, desk.paths)
    if take_out is None and held:
        take_out = _asked_to_take_out(client, held, asks=asks)
    change = plan_connect(client, desk.around, desk.wanted, desk.notes, held if take_out else ())
    own = own_name_in(client, listed)
    return ClientPlan(change, tuple(name for name in listed.servers if name != own), held, bool(own))


def _asked_to_take_out(client: Client, held: Mapping[str, str], *, asks: bool) -> bool:
    many = f"{len(held)} servers" if len(held) > 1 else "1 server"
    said = f"OneTool holds {many} of {client.title} too: {', '.join(held)}."
    if asks and sys.stdin.isatty():
        return typer.confirm(f"{said} Take them out of {client.title}?", err=True)
    echo(f"{said} Add --take-out to take them out of {client.title}.", err=True)
    return False


def _carry_out(
    desk: _Desk, changes: Sequence[ClientChange], done: str, *, dry_run: bool, yes: bool, as_json: bool
) -> list[dict[str, Any]]:
    """Show *changes*, ask, write them, and return what was done."""
    from ot.cli.terminal.client_screen import sentence, told_of
    from ot.config.clients.connection import write_change

    diffs = [_diff(desk, change) for change in changes]
    if not as_json:
        for line in chain.from_iterable(diffs):
            echo(line)
    pending = any(change.changes for change in changes)
    if pending and not dry_run and not (yes or confirm("Write this?", "write")):
        echo("Nothing was written.", err=True)
        raise typer.Exit(4)
    told: list[dict[str, Any]] = []
    for change, lines in zip(changes, diffs, strict=True):
        backup = None
        if change.changes and not dry_run:
            backup = desk.attempt(lambda change=change: write_change(change, desk.paths, desk.notes))
        told.append(told_of(change, done, backup, lines, written=not dry_run))
        if not as_json:
            echo(sentence(told[-1], change.client))
    return told


def _diff(desk: _Desk, change: ClientChange) -> list[str]:
    from ot.config.clients.client_diff import diff_lines, secret_values
    from ot.config.clients.client_file import server_list

    if not change.changes:
        return []
    listed = desk.attempt(lambda: server_list(change.client, change.file, desk.around))
    return diff_lines(change, secret_values(change.client, listed, desk.around) if listed else ())
