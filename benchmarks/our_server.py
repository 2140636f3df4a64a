"""Our server exactly as ``onetool serve`` builds it, plus the packs of a directory, by default ``packs/``.

The pack ``demo`` does what ``demo.echo`` of the floor does, so that both sides of a comparison do the same work.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ot.app import App, serve
from ot.cli.event_loop import run_async
from ot.cli.own_log import start_log
from ot.config.paths import Paths
from ot.registry.tool_loader import ToolLoader


def main() -> None:
    """Serve until the client goes away."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "packs").absolute()
    sys.path.insert(0, str(directory.parent))
    app = App(Paths.find(), packs=ToolLoader(directory, directory.name).packs())
    start_log(app)
    run_async(serve(app))


if __name__ == "__main__":
    main()
