"""The guide server: the declared tools under their prefix, and the documents as resources.

A tool's arguments are checked by its own model alone, and every answer is a `Result` as JSON.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, cast

# Its rich log handler can block the whole server on a long text; it must be off before the import.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)  # else it obeys an .env of the working directory
os.environ.setdefault("FASTMCP_LOG_LEVEL", "WARNING")

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError
from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mcp_core import ExtMcpToolDecorator, Result, ToolArguments, arguments_model, validated
from mcp_guide.document import GuideError
from mcp_guide.store import GuideEnvironment, Store
from mcp_guide.tools import import_tools

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


# ---------------------------------------------------------------- typed tools


class TypedTool(Tool):
    """Answers every call with a result as JSON, also one whose arguments are wrong or whose function raises."""

    function: Annotated[SkipJsonSchema[Callable[..., Any]], Field(exclude=True)]
    model: Annotated[SkipJsonSchema[type[ToolArguments]], Field(exclude=True)]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the tool's result; ``is_error`` says whether it is a failure."""
        checked = validated(self.model, arguments)
        result = await self._carry_out(checked.unwrap()) if checked.success else checked
        return ToolResult(content=result.to_json_str(), is_error=not result.success)

    async def _carry_out(self, arguments: ToolArguments) -> Result[Any]:
        try:
            if inspect.iscoroutinefunction(self.function):
                return cast("Result[Any]", await self.function(arguments))
            return await anyio.to_thread.run_sync(self.function, arguments, abandon_on_cancel=True)
        except Exception as error:  # noqa: BLE001 - a tool is other people's code
            return Result.failure(
                f"{self.name} failed", "internal_error", exception=error, instruction="Tell the user."
            )


class TypedTools:
    """What registers typed functions at a FastMCP server, with the schemas of their models."""

    def __init__(self, server: FastMCP) -> None:
        """Register at *server*."""
        self._server = server

    def tool(self, *, name: str, description: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a typed function."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            model = arguments_model(function)
            if model is None:
                raise TypeError(f"{name} must have one parameter, annotated with a model of ToolArguments")
            hints = ToolAnnotations(read_only_hint=model.read_only, destructive_hint=model.consent_word() is not None)
            self._server.add_tool(
                TypedTool(
                    name=name,
                    description=description,
                    parameters=model.model_json_schema(),
                    annotations=hints,
                    function=function,
                    model=model,
                )
            )
            return function

        return register
