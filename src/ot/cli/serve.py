"""onetool serve: the MCP server over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", epilog="Example: claude mcp add onetool -- onetool serve")(serve)


def serve(
    trust_project: Annotated[
        bool, typer.Option("--trust-project", help="Use the project's .onetool/ without asking: for CI.")
    ] = False,
    packs: Annotated[
        str,
        typer.Option(help="Offer the tools of these packs one by one too, separated by commas: for classic clients."),
    ] = "",
) -> None:
    """Serve MCP on standard input and output, for a client to start."""
    from ot.cli.serving import serve_stdio

    serve_stdio(trust_project=trust_project, packs=tuple(filter(None, packs.split(","))))
