"""onetool serve: the MCP server over standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.terminal.completion import complete_pack_list
from ot.cli.terminal.options import TrustProject

if TYPE_CHECKING:
    from ot.team.serving import Listening


def serve(
    trust_project: TrustProject = False,
    packs: Annotated[
        str,
        typer.Option(
            help="Offer the tools of these packs one by one too, separated by commas: for classic clients. "
            "With --http they are all that is offered: for programs on other hosts.",
            autocompletion=complete_pack_list,
        ),
    ] = "",
    http: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Serve over HTTP instead, for a team or for clients that want a URL."),
    ] = "",
    # The entry hands a shared start to the relay; what comes here is served alone.
    shared: Annotated[
        bool,
        typer.Option("--shared/--alone", help="Use the one server that all your clients share, or start another."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write the log on standard error as JSON; over HTTP, print where it listens."),
    ] = False,
) -> None:
    """Serve MCP on standard input and output, for a client to start; or over HTTP, for clients to connect to."""
    chosen = tuple(filter(None, packs.split(",")))
    log_format = "json" if as_json else ""
    if http:
        _serve_http(http, chosen, trust_project=trust_project, as_json=as_json)
        return
    from ot.cli.terminal.own_workspace import serve_stdio

    serve_stdio(trust_project=trust_project, packs=chosen, log_format=log_format)


def _serve_http(address: str, packs: Sequence[str], *, trust_project: bool, as_json: bool) -> None:
    from ot.cli.terminal.event_loop import end_without_waiting, run_async
    from ot.logs import end_logs

    run_async(_serve(address, packs, trust_project=trust_project, as_json=as_json))
    end_logs()
    end_without_waiting()


async def _serve(address: str, packs: Sequence[str], *, trust_project: bool, as_json: bool) -> None:
    from ot.cli.terminal.own_workspace import start_log
    from ot.config.paths import Paths

    require_team("onetool serve --http")
    from ot.team.http.listen_address import ListenAddress, url_of
    from ot.team.serving import serve_http
    from ot.team.team_parts import open_parts

    where, paths = ListenAddress.read(address), Paths.find()
    listening = where.bind()
    try:
        parts = open_parts(paths, where, url_of(listening), trust_project=trust_project)
    except BaseException:
        listening.close()
        raise
    start_log(parts.front.workspace, format="json" if as_json else "", redact=parts.redact)
    await serve_http(parts, listening, _tell_json if as_json else _tell, packs)


def require_team(command: str) -> None:
    """Refuse *command* where the extra is not installed.

    Raises:
        MissingExtra: It is not.
    """
    from importlib import import_module

    from ot.errors import MissingExtra

    try:
        import_module("ot.team.serving")
    except ModuleNotFoundError as error:
        if (error.name or "ot").partition(".")[0] == "ot":
            raise
        raise MissingExtra(command, "team") from None


def _tell_json(listening: Listening) -> None:
    """Print where the server is, for programs; the token itself stays in its file."""
    import json

    from ot.cli.terminal import echo

    echo(json.dumps({"url": listening.url, "token_file": str(listening.token_file or "")}))


def _tell(listening: Listening) -> None:
    """Say where the server is, and what a client's settings need."""
    import json
    import sys

    from ot.cli.terminal import echo

    echo(f"Serving MCP at {listening.url}", err=True)
    if not listening.token_file:
        return
    # What is not a terminal is often kept: a log should not hold the token.
    shown = listening.token if sys.stderr.isatty() else "<the token>"
    entry = {"type": "http", "url": listening.url, "headers": {"Authorization": f"Bearer {shown}"}}
    echo(f"The token of this server stands in {listening.token_file}. A client's entry:", err=True)
    echo(json.dumps({"mcpServers": {"onetool": entry}}, indent=2), err=True)
