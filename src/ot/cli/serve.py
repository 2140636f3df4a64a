"""onetool serve: the MCP server over standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ot.cli.terminal.completion import complete_pack_list
from ot.cli.terminal.options import TrustProject


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
    from ot import extras, hooks
    from ot.errors import MissingExtra

    missing = MissingExtra("onetool serve --http", extras.EDGES["http"])
    if (hook := hooks.hook_named(hooks.EDGES, "http")) is None:
        raise missing
    try:
        serve_http = hook.load()
    except ModuleNotFoundError as error:
        raise missing from error  # a library that the extra brings was taken out again
    serve_http(address, packs, trust_project=trust_project, as_json=as_json)
