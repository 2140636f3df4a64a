"""The guide server: the declared tools under their prefix, and the documents as resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

# Its rich log handler can block the whole server on a long text; it must be off before the import.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it reads an .env file of the working directory
os.environ.setdefault("FASTMCP_LOG_LEVEL", "WARNING")

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.resources import Resource
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp_types import ResourceListChangedNotification
from pydantic import AnyUrl

from mcp_core import ToolArguments
from mcp_core.typed_tools import TypedTools
from mcp_guide import tools
from mcp_guide.document import DocumentInfo, answer
from mcp_guide.folder import Key
from mcp_guide.store import Store

INSTRUCTIONS = "Documents that say how to work in this project. Before a task, get those that fit, or search them."
MAX_TITLES, MAX_TITLE = 40, 80


async def build_server(*, include_examples: bool = False) -> FastMCP:
    """Return a server with every tool of the guide that is declared and not yet registered elsewhere."""
    tools.import_tools(include_examples=include_examples)
    return server_with(await ToolArguments.get_declared_tools(tools.__name__))


def server_with(declared: Mapping[str, Callable[..., Any]]) -> FastMCP:
    """Return a server that offers the *declared* tools and the documents."""
    server = FastMCP("guide", _instructions(), version=version("onetool-run"), mask_error_details=True)
    # Without the schemas of results: they would make the definitions half as long again.
    TypedTools(server).register(*declared.values(), output_schema=None)
    server.resource("guide://{category}/{name}", mime_type="text/markdown", description="One document")(_text_of)
    server.add_middleware(DocumentResources())
    return server


def _instructions() -> str:
    found = _list_documents()
    lines = [f"- {info['category']}/{info['name']}: {info['title'][:MAX_TITLE]}" for info in found[:MAX_TITLES]]
    more = [f"- and {len(found) - MAX_TITLES} more"] if len(found) > MAX_TITLES else []
    return "\n".join([INSTRUCTIONS, *lines, *more])


def _list_documents() -> Sequence[DocumentInfo]:
    listing = answer(lambda: Store.here().documents())
    return listing.unwrap()["documents"] if listing.success else ()


def _keys() -> list[Key]:
    return answer(lambda: Store.here().keys()).value or []


def _text_of(category: str, name: str) -> str:
    found = answer(lambda: Store.here().render(name, category, {}))
    if not found.success:
        raise ResourceError(f"{found.error}. {found.instruction}")
    return found.unwrap()["text"]


class DocumentResources(Middleware):
    """Lists the documents that there are, and tells a client whose call finds that some have come or gone since."""

    def __init__(self) -> None:
        self._listed: list[Key] | None = None

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        self._listed = await anyio.to_thread.run_sync(_keys)
        return [
            Resource(
                uri=AnyUrl(f"guide://{info['category']}/{info['name']}"),
                name=f"{info['category']}/{info['name']}",
                title=info["title"],
                description=info["description"] or None,
                mime_type="text/markdown",
            )
            for info in await anyio.to_thread.run_sync(_list_documents)
        ]

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        result = await call_next(context)
        if self._listed is not None and context.fastmcp_context is not None:
            before, self._listed = self._listed, await anyio.to_thread.run_sync(_keys)
            if self._listed != before:
                await context.fastmcp_context.send_notification(ResourceListChangedNotification())
        return result
