"""onetool stop: the server that clients share, ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import echo, echo_json, pluralize
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.cli.sharing.running_servers import RunningServer


def stop(
    now: Annotated[bool, typer.Option("--now", help="Do not wait for open runs.")] = False, as_json: AsJson = False
) -> None:
    """End the server that your clients share, after its open runs.

    Clients stay connected: the next call of one of them starts the server again.
    """
    from ot.cli.sharing.running_servers import running_servers
    from ot.relay.place import Unshared

    try:
        servers = running_servers()
    except Unshared:
        servers = []
    told = [_end(server, now=now) for server in servers]
    if as_json:
        echo_json({"servers": told})
    else:
        _tell(told)
    raise typer.Exit(FAILURE if any(one["problem"] for one in told) else OK)


def _end(server: RunningServer, *, now: bool) -> dict[str, Any]:
    from ot.cli.sharing.running_servers import stop as stop_server

    problem = server.silent
    try:
        if not problem:
            stop_server(server, now=now)
    except OSError as error:
        problem = str(error) or type(error).__name__
    clients = len(server.state.get("connections", ()))
    return {"pid": server.state.get("pid"), "socket": str(server.socket), "clients": clients, "problem": problem}


def _tell(told: list[dict[str, Any]]) -> None:
    for one in told:
        if one["problem"]:
            echo(f"onetool: the server at {one['socket']} was not ended: {one['problem']}", err=True)
        else:
            echo(f"Ended the shared server, process {one['pid']}, with {pluralize(one['clients'], 'client')}.")
    if not told:
        echo("No shared server is running.", err=True)
