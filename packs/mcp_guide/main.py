"""The command ``mcp-guide``: serves the guide over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys

from mcp_core.tool_decorator import PREFIX

LOG_LEVEL, EXAMPLES = "MCP_GUIDE_LOG", "MCP_INCLUDE_EXAMPLE_TOOLS"


def _configure_environment() -> None:
    """Name the tools ``guide_*`` unless the user has chosen another prefix, or none."""
    os.environ.setdefault(PREFIX, "guide")


def _configure_logs() -> None:
    """Log to standard error: standard output belongs to the protocol."""
    level = logging.getLevelNamesMapping().get(os.environ.get(LOG_LEVEL, "").upper(), logging.WARNING)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("mcp_core", "mcp_guide"):
        logging.getLogger(name).setLevel(level)


async def _serve() -> None:
    from mcp_guide.server import build_server  # noqa: PLC0415 - the prefix must be set before a server exists

    server = await build_server(include_examples=os.environ.get(EXAMPLES) == "true")
    await server.run_async(transport="stdio", show_banner=False)


def main() -> None:
    """Serve until the client goes away."""
    _configure_environment()
    _configure_logs()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve())
