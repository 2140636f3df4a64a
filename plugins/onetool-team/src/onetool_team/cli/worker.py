"""onetool worker: carries out the background runs of a team's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from onetool_team.background.worker_service import Working


def worker(
    probes: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Answer /healthz and /readyz there, for whatever watches processes."),
    ] = "",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write the log on standard error as JSON; once it is ready, print what it does."),
    ] = False,
) -> None:
    """Carry out the background runs of a team's server: start it with the configuration of `onetool serve --http`."""
    from ot.cli.terminal.event_loop import end_without_waiting, run_async
    from ot.logs import end_logs

    run_async(_work(probes, as_json=as_json))
    end_logs()
    end_without_waiting()


async def _work(probes: str, *, as_json: bool) -> None:
    from onetool_team.background.worker_parts import open_worker
    from onetool_team.background.worker_service import serve_runs
    from onetool_team.http.listen_address import ListenAddress
    from ot.cli.terminal.own_workspace import start_log
    from ot.config.paths import Paths

    parts = open_worker(Paths.find())
    listening = ListenAddress.read(probes).bind() if probes else None
    start_log(parts.team.front.workspace, format="json" if as_json else "", redact=parts.redact)
    await serve_runs(parts, listening, _tell_json if as_json else _tell)


def _tell_json(working: Working) -> None:
    """Print what it does, for programs."""
    import json
    from dataclasses import asdict

    from ot.cli.terminal import echo

    echo(json.dumps(asdict(working)))


def _tell(working: Working) -> None:
    """Say what it does."""
    from ot.cli.terminal import echo

    echo(f"Carrying out background runs, {working.at_once} at once, in the {working.engine} engine.", err=True)
    if working.probes:
        echo(f"Probes: {working.probes}/healthz and {working.probes}/readyz", err=True)
    echo("Ctrl-C ends it: runs under way are left to other workers. SIGTERM lets them end first.", err=True)
