"""onetool serve: the MCP server over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from ot.cli.terminal.completion import complete_pack_list
from ot.cli.terminal.options import TrustProject


def serve(
    trust_project: TrustProject = False,
    packs: Annotated[
        str,
        typer.Option(
            help="Offer the tools of these packs one by one too, separated by commas: for classic clients.",
            autocompletion=complete_pack_list,
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Write the log on standard error as JSON.")] = False,
) -> None:
    """Serve MCP on standard input and output, for a client to start."""
    from ot.cli.terminal.own_workspace import serve_stdio

    chosen = tuple(filter(None, packs.split(",")))
    serve_stdio(trust_project=trust_project, packs=chosen, log_format="json" if as_json else "")
