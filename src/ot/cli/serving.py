"""Starts the server for ``onetool serve``."""

from __future__ import annotations

from collections.abc import Sequence

from ot.app import App, serve
from ot.cli.event_loop import end_without_waiting, run_async
from ot.cli.own_log import start_log
from ot.config.paths import Paths
from ot.logs import end_logs


def serve_stdio(*, trust_project: bool, packs: Sequence[str] = ()) -> None:
    """Serve MCP on standard input and output until the client goes away; *packs* also tool by tool."""
    app = App(Paths.find(), trust_project=trust_project)
    start_log(app)
    run_async(serve(app, packs))
    end_logs()
    end_without_waiting()
