"""``onetool serve`` with the packs of this directory beside the bundled ones; ``outside`` counts as proxied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ot.cli.terminal.event_loop import end_without_waiting, run_async
from ot.cli.terminal.own_workspace import serve
from ot.config.paths import Paths
from ot.logs import configure_logs
from ot.registry.tool_loader import ToolLoader
from ot.registry.tool_registry import Pack
from ot.workspace import Workspace

PACKS = Path(__file__).parent / "fault_packs"


def fault_packs(package: str = "fault_packs") -> Iterator[Pack]:
    """Yield the packs, importable below *package*."""
    for pack in ToolLoader(PACKS, package).packs():
        yield replace(pack, source="proxied") if pack.name == "outside" else pack


def main() -> None:
    """Serve until the client goes away."""
    app = Workspace.alone(Paths.find(), packs=fault_packs())
    configure_logs(app.picture.loaded.config.logs.level, lambda text: app.picture.loaded.secrets.redact(text))
    run_async(serve(app))
    end_without_waiting()


if __name__ == "__main__":
    main()
