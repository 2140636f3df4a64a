"""``onetool serve`` with the packs of the fault tests, and no limit on how often a worker may die."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ot.cli.terminal.event_loop import end_without_waiting, run_async
from ot.cli.terminal.own_workspace import serve
from ot.config.paths import Paths
from ot.logs import configure_logs
from ot.registry.tool_loader import ToolLoader
from ot.workers.pool import crash_backoff
from ot.workspace import Workspace

PACKS = Path(__file__).parents[1] / "faults" / "fault_packs"
"""Their parent directory is on the path of this server."""


def main() -> None:
    """Serve until the client goes away."""
    app = Workspace.alone(Paths.find(), packs=ToolLoader(PACKS, "fault_packs").packs())
    app.host.workers._new_backoff = partial(crash_backoff, deaths=10**9)
    configure_logs(app.picture.loaded.config.logs.level, lambda text: app.picture.loaded.secrets.redact(text))
    run_async(serve(app))
    end_without_waiting()


if __name__ == "__main__":
    main()
