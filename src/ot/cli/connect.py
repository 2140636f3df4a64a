"""onetool connect and disconnect: OneTool added to the settings of other clients, and removed again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.connecting.client_names import choose_clients, complete_clients
from ot.cli.exit_codes import FAILURE, NOT_FOUND, OK
from ot.cli.terminal import echo_json, fail
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.connecting.connect_flow import ConnectFlow
    from ot.config.clients.connection import EntryWanted

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
        typer.Option("--take-out/--leave", help="Whether to remove servers from the client that OneTool has too."),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option("--shared/--alone", help="Whether it uses the server of all your clients, or one of its own."),
    ] = True,
    cwd: Annotated[str, typer.Option("--cwd", help="The directory that OneTool works in.")] = "",
    name: Name = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    show_block: Annotated[bool, typer.Option("--print", help="Print what to paste, and write nothing.")] = False,
    show_link: Annotated[bool, typer.Option("--link", help="Print a link that adds OneTool.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add OneTool to the settings of a client, after showing the difference.

    CLIENT is claude-code, claude-desktop, cursor, vscode, codex, windsurf, zed or gemini-cli. Comments, order and all
    other settings stay as they are; onetool disconnect restores the file.

    All connected clients share one server, which starts with the first of them. It runs outside of a sandbox that a
    client puts around its own processes: choose --alone for such a client.
    """
    from ot.cli.connecting.client_screen import show_costs, show_pasted

    wanted, flow = _make_entry(cwd, name, shared), _flow(dry_run, yes, as_json)
    names = _choose_clients(flow, clients or (), all_clients)
    if show_block or show_link:
        show_pasted(names, flow.around, wanted, as_json=as_json, only_link=show_link)
        return
    told = flow.connect(names, wanted, take_out=take_out)
    if as_json:
        echo_json({"clients": told, "problems": flow.problems})
    else:
        show_costs(told)
    raise typer.Exit(FAILURE if flow.problems else OK)


def disconnect(
    clients: Clients = None,
    all_clients: All = False,
    name: Name = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove OneTool from the settings of a client, after showing the difference.

    If the file has not changed since connect, its old bytes are restored; otherwise only OneTool's entry is removed.
    """
    flow = _flow(dry_run, yes, as_json)
    told = flow.disconnect(_choose_clients(flow, clients or (), all_clients), name)
    if as_json:
        echo_json({"clients": told, "problems": flow.problems})
    raise typer.Exit(FAILURE if flow.problems else OK)


def _flow(dry_run: bool, yes: bool, as_json: bool) -> ConnectFlow:
    from ot.cli.connecting.connect_flow import ConnectFlow, HowToWrite
    from ot.config.paths import Paths

    return ConnectFlow(Paths.find(), HowToWrite(dry_run, yes, as_json))


def _choose_clients(flow: ConnectFlow, names: Sequence[str], all_clients: bool) -> list[str]:
    from ot.config.clients.connection import installed_clients
    from ot.config.clients.known_clients import CLIENTS

    chosen = choose_clients([name for name in names if name != "all"])
    found = installed_clients(flow.around)
    if all_clients or "all" in names:
        return found or fail(f"none of the clients is on this machine: {', '.join(CLIENTS)}", NOT_FOUND)
    if not chosen:
        raise typer.BadParameter(f"name a client, or --all; found here: {', '.join(found) or 'none'}")
    return chosen


def _make_entry(cwd: str, name: str, shared: bool) -> EntryWanted:
    from ot.config.clients.connection import EntryWanted
    from ot.config.clients.launcher import this_launch_command

    directory = Path(cwd).expanduser().absolute() if cwd else None
    if directory and not directory.is_dir():
        raise typer.BadParameter(f"there is no directory {cwd}")
    return EntryWanted(this_launch_command(shared=shared), {"OT_CWD": str(directory)} if directory else {}, name)
