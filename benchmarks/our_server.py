"""Our server exactly as ``onetool serve`` builds it, plus the packs of a directory, by default ``packs/``.

The pack ``demo`` does what ``demo.echo`` of the floor does, so that both sides of a comparison do the same work.
"""
# ruff: noqa: E402 - the rest is imported with the garbage collector off, as the command does

from __future__ import annotations

import gc

gc.disable()

import sys
from pathlib import Path

from ot.cli.terminal.event_loop import new_runner
from ot.cli.terminal.own_workspace import serve, start_log
from ot.config.paths import Paths
from ot.registry.tool_loader import ToolLoader
from ot.workspace import Workspace


def main() -> None:
    """Serve until the client goes away."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "packs").absolute()
    sys.path.insert(0, str(directory.parent))
    app = Workspace.alone(Paths.find(), packs=ToolLoader(directory, directory.name).packs())
    start_log(app)
    with new_runner() as runner:
        runner.run(serve(app))


if __name__ == "__main__":
    main()
