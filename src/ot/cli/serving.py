"""Starts the server for ``onetool serve``."""

from __future__ import annotations

from ot.app import App, serve
from ot.cli.event_loop import end_without_waiting, run_async
from ot.config.paths import Paths
from ot.logs import configure_logs


def serve_stdio(*, trust_project: bool) -> None:
    """Serve MCP on standard input and output until the client goes away."""
    app = App(Paths.find(), trust_project=trust_project)
    # Asked anew for every line: a reload may bring new secrets.
    configure_logs(app.picture.loaded.config.logs.level, lambda text: app.picture.loaded.secrets.redact(text))
    run_async(serve(app))
    end_without_waiting()
