"""The MCP server: ``run``, progress, requests to the client. Configures FastMCP, which must precede its import."""

import os
from importlib import import_module
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

# Its rich log handler blocks the whole server for seconds on a long text.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ["FASTMCP_LOG_ENABLED"] = "false"  # its lines are written as ours are, whatever its user prefers
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it reads an .env file of the working directory


def import_protocol() -> None:
    """Import the library ahead of our modules, with models that are built when they are first used.

    It has 600, of which a client needs 50: to build all takes a tenth of the start and 5 MB.
    """
    adapters: Any = TypeAdapter
    config, defers = BaseModel.model_config, adapters.__dict__.get("_defer_build")
    BaseModel.model_config = ConfigDict(defer_build=True)
    adapters._defer_build = True  # it has no public default
    try:
        import_module("fastmcp.server.server")
    finally:
        BaseModel.model_config, adapters._defer_build = config, defers
