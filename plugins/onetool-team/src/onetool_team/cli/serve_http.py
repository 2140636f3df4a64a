"""What ``onetool serve --http`` hands over to: the server for a team, or for one user's clients that want a URL."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from onetool_team.http.listen_address import ListenAddress, url_of
from onetool_team.serving import Listening, serve_team
from onetool_team.team_parts import open_parts
from ot.cli.terminal import echo
from ot.cli.terminal.event_loop import end_without_waiting, run_async
from ot.cli.terminal.own_workspace import start_log
from ot.config.paths import Paths
from ot.logs import end_logs


def serve_http(address: str, packs: Sequence[str], *, trust_project: bool, as_json: bool) -> None:
    """Serve MCP at *address* until a signal asks for the end."""
    run_async(_serve(address, packs, trust_project=trust_project, as_json=as_json))
    end_logs()
    end_without_waiting()


async def _serve(address: str, packs: Sequence[str], *, trust_project: bool, as_json: bool) -> None:
    where, paths = ListenAddress.read(address), Paths.find()
    listening = where.bind()
    try:
        parts = open_parts(paths, where, url_of(listening), trust_project=trust_project)
    except BaseException:
        listening.close()
        raise
    start_log(parts.front.workspace, format="json" if as_json else "", redact=parts.redact)
    await serve_team(parts, listening, _tell_json if as_json else _tell, packs)


def _tell_json(listening: Listening) -> None:
    """Print where the server is, for programs; the token itself stays in its file."""
    echo(json.dumps({"url": listening.url, "token_file": str(listening.token_file or "")}))


def _tell(listening: Listening) -> None:
    """Say where the server is, and what a client's settings need."""
    echo(f"Serving MCP at {listening.url}", err=True)
    if not listening.token_file:
        return
    # What is not a terminal is often kept: a log should not hold the token.
    shown = listening.token if sys.stderr.isatty() else "<the token>"
    entry = {"type": "http", "url": listening.url, "headers": {"Authorization": f"Bearer {shown}"}}
    echo(f"The token of this server stands in {listening.token_file}. A client's entry:", err=True)
    echo(json.dumps({"mcpServers": {"onetool": entry}}, indent=2), err=True)
