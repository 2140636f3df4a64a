"""The command ``mcp-guide``: serves the guide over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys

from mcp_core.tool_decorator import PREFIX
from mcp_guide.store import GuideEnvironment

LOG_LEVEL = "MCP_GUIDE_LOG"


def _configure_environment() -> None:
    """Name the tools ``guide_*`` unless the user has chosen another prefix, or none."""
    os.environ.setdefault(PREFIX, "guide")


def _configure_logs() -> None:
    """Log to standard error: standard output belongs to the protocol."""
    level = logging.getLevelNamesMapping().get(os.environ.get(LOG_LEVEL, "").upper(), logging.WARNING)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("mcp_core", "mcp_guide"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


async def _serve() -> None:
    from mcp_guide.server import build_server  # noqa: PLC0415 - the prefix must be set before a server exists

    server = await build_server(GuideEnvironment.read())
    await server.run_async(transport="stdio", show_banner=False)


def main() -> None:
    """Serve until the client goes away."""
    _configure_environment()
    _configure_logs()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve())
