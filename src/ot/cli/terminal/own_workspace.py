"""The workspace of one command, opened and closed with its log."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ot.cli.terminal.event_loop import end_without_waiting, new_runner, run_async
from ot.config.paths import Paths
from ot.log_span import LogSpan
from ot.logs import LogFile, configure_logs, end_logs, log_path
from ot.version import installed_version
from ot.workspace import Workspace

logger = logging.getLogger(__name__)


def start_log(
    app: Workspace, *, terminal_level: str = "", format: str = "", redact: Callable[[str], str] | None = None
) -> None:
    """Write the log of *app* from now on; *terminal_level* is for a person who waits for a command to end.

    Where there are more secrets than those of *app*, *redact* takes them out.
    """
    loaded = app.picture.loaded
    logs = loaded.config.logs
    file = LogFile(log_path(loaded.state_dir)) if logs.file else None

    def own(text: str) -> str:
        return app.picture.loaded.secrets.redact(text)  # asked anew for every line: a reload may bring new secrets

    configure_logs(logs.level, redact or own, format=format or logs.format, file=file, terminal_level=terminal_level)


@asynccontextmanager
async def own_workspace(*, terminal_level: str = "", **options: Any) -> AsyncGenerator[Workspace]:
    """Yield that of the working directory; its log shows *terminal_level* and above, or what the settings say."""
    app = Workspace.alone(Paths.find(), **options)
    start_log(app, terminal_level=terminal_level or app.picture.loaded.config.logs.level)
    try:
        yield app
    finally:
        await app.aclose()
        end_logs()


@contextmanager
def workspace_at_rest() -> Generator[Workspace]:
    """Yield that of the working directory to look at: nothing is started, and nothing is asked."""
    app = Workspace.alone(Paths.find())
    try:
        yield app
    finally:
        run_async(app.aclose())


def serve_stdio(*, trust_project: bool, packs: Sequence[str] = (), log_format: str = "") -> None:
    """Serve MCP on standard input and output until the client goes away; *packs* also tool by tool."""
    workspace = Workspace.alone(Paths.find(), trust_project=trust_project)
    start_log(workspace, format=log_format)
    with new_runner() as runner:
        runner.run(serve(workspace, packs))
    end_logs()
    end_without_waiting()


async def serve(workspace: Workspace, packs: Sequence[str] = ()) -> None:
    """Serve *workspace* over standard input and output until the client goes away; *packs* also tool by tool.

    Raises:
        UnknownPack: One of *packs* does not exist.
        EngineUnavailable: The engine that was asked for is unavailable.
    """
    # It gets warm while the protocol's library is imported.
    workspace.spawn_engine()
    from ot.server import import_protocol

    import_protocol()
    from ot.server.connection import Connection
    from ot.server.idle_garbage import collect_between_replies
    from ot.server.serve import serve_stdio as serve_wire

    connection = Connection(workspace, packs)
    with LogSpan(logger, "mcp.server.start", version=installed_version(), cwd=str(workspace.paths.cwd)):
        await connection.prepare()
    collect_between_replies()
    with LogSpan(logger, "mcp.server.stop"):
        await serve_wire(connection)
