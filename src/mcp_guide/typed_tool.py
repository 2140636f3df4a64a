"""TypedTool: a typed function as FastMCP's tool, its arguments checked by its own model alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, cast

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mcp_core import Result, ToolArguments, arguments_model, validated


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
