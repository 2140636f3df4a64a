"""The guide server: the declared tools under their prefix, and the documents as resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

# Its rich log handler can block the whole server on a long text; it must be off before the import.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it obeys an .env of the working directory
os.environ.setdefault("FASTMCP_LOG_LEVEL", "WARNING")

from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError

from mcp_core import ExtMcpToolDecorator, ToolArguments
from mcp_guide.environment import GuideEnvironment
from mcp_guide.guide_error import GuideError
from mcp_guide.store import Store
from mcp_guide.tools import import_tools
from mcp_guide.typed_tool import TypedTools

INSTRUCTIONS = (
    "Documents that say how to work in this project. "
    "List or search them before you start on a task, and read those that fit."
)


async def build_server(environment: GuideEnvironment) -> FastMCP:
    """Return a server with every tool that is declared and not yet registered elsewhere."""
    import_tools(include_examples=environment.include_examples)
    return server_with(await ToolArguments.get_declared_tools())


def server_with(declared: Mapping[str, Callable[..., Any]]) -> FastMCP:
    """Return a server that offers the *declared* tools and the documents."""
    server = FastMCP("guide", INSTRUCTIONS, version=_version(), mask_error_details=True, on_duplicate="error")
    decorator = ExtMcpToolDecorator(TypedTools(server))
    for name, function in declared.items():
        decorator.tool(name=name, description=ToolArguments.build_tool_description(function))(function)
    server.resource("guide://{category}/{name}", mime_type="text/markdown", description="One document")(_document)
    return server


def _document(category: str, name: str) -> str:
    try:
        return Store.of(GuideEnvironment.read()).get(category, name)["text"]
    except GuideError as error:
        raise ResourceError(f"{error.error}. {error.instruction}") from None


def _version() -> str:
    try:
        return version("onetool-run")
    except PackageNotFoundError:
        return "0"
