"""``onetool serve`` with a pack ``hub`` that stands for a proxied server's; its tools write down what they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import anyio

from ot.cli.terminal.event_loop import end_without_waiting, run_async
from ot.cli.terminal.own_workspace import serve
from ot.config.paths import Paths
from ot.logs import configure_logs
from ot.registry.tool import Tool
from ot.registry.tool_loader import ToolLoader
from ot.registry.tool_registry import Pack
from ot.workspace import Workspace

PACKS = ToolLoader(Path(__file__).parent / "ask_packs", "ask_packs")


def proxied(pack: Pack) -> Pack:
    """Return *pack* as one of a proxied server that says of ``look`` that it only reads, and else nothing."""

    def tools() -> Iterable[Tool]:
        source = f"proxy:{pack.name}"
        return [
            replace(tool, source=source, read_only=tool.name == "look" or None, destructive=False)
            for tool in pack.tools.values()
        ]

    return Pack(pack.name, f"proxy:{pack.name}", tools, origin=pack.origin)


def main() -> None:
    """Serve until the client goes away."""

    async def always(pattern: str) -> None:
        await anyio.Path("always.txt").write_text(pattern)

    app = Workspace.alone(Paths.find(), packs=map(proxied, PACKS.packs()), allow_always=always)
    configure_logs(app.picture.loaded.config.logs.level, lambda text: app.picture.loaded.secrets.redact(text))
    run_async(serve(app))
    end_without_waiting()


if __name__ == "__main__":
    main()
