"""TypedTools: typed tools on a FastMCP server, with everything that their models and results say."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Annotated, Any

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from mcp_core.published_schema import returned_schema
from mcp_core.result import Result, ToolFailure, as_result
from mcp_core.tool_arguments import ToolArguments, required_model
from mcp_core.tool_decorator import ExtMcpToolDecorator, LoggedCall
from mcp_core.validation import validated


class TypedTool(Tool):
    """Answers every call with a result, also one whose arguments are wrong or whose function raises."""

    function: Annotated[SkipJsonSchema[Callable[..., Any]], Field(exclude=True)]
    model: Annotated[SkipJsonSchema[type[ToolArguments]], Field(exclude=True)]

    def get_meta(self) -> dict[str, Any]:
        """Return the given metadata; FastMCP would add its own to every definition."""
        return self.meta  # pyright: ignore[reportReturnType] - none is what leaves the key out

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the tool's result; ``is_error`` says whether it is a failure."""
        checked = validated(self.model, arguments)
        if checked.success:
            result = await self._carry_out(checked.unwrap())
        else:
            # The function, which logs its calls, is not called; who tried to is of interest all the more.
            with LoggedCall(self.name) as logged:
                logged.outcome = result = checked
        text = result.to_json_str()
        return ToolResult(text, structured_content=json.loads(text), is_error=not result.success)

    async def _carry_out(self, arguments: ToolArguments) -> Result[Any]:
        try:
            if inspect.iscoroutinefunction(self.function):
                return as_result(await self.function(arguments))
            return as_result(await anyio.to_thread.run_sync(self.function, arguments, abandon_on_cancel=True))
        except ToolFailure as failure:
            return Result.failure(failure.error, failure.error_type, instruction=failure.instruction)
        except Exception as error:  # noqa: BLE001 - a tool is other people's code
            what = f"{self.name} failed"
            return Result.failure(what, "internal_error", exception=error, instruction="Tell the user.")


class TypedTools:
    """Registers typed functions at a FastMCP server."""

    def __init__(self, server: FastMCP) -> None:
        self._server = server
        self._modules: dict[str, str] = {}

    def register(
        self, *functions: Callable[..., Any], prefix: str | None = None, brief: bool = False, **options: Any
    ) -> None:
        """Register each function after *prefix*, or ``MCP_TOOL_PREFIX``; *options* override what clients see of it."""
        decorator = ExtMcpToolDecorator(self, prefix=prefix)
        for function in functions:
            # Arguments are repeated there for clients that show a model no schema.
            description = ToolArguments.build_tool_description(function, arguments=not brief)
            decorator.tool(description=description, **options)(function)

    def tool(
        self, *, name: str, description: str, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a typed function; *options* override what clients see of it."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            if name in self._modules:
                raise ValueError(f"{function.__module__}: tool '{name}' is already registered by {self._modules[name]}")
            self._server.add_tool(_make_typed_tool(function, name=name, description=description, **options))
            self._modules[name] = function.__module__
            return function

        return add


def _make_typed_tool(function: Callable[..., Any], **options: Any) -> TypedTool:
    model = required_model(function)
    destroys = True if model.consent_word() else False if model.read_only else None
    said: dict[str, Any] = {
        "parameters": model.model_json_schema(),
        "output_schema": _result_schema(returned_schema(function)),
        "annotations": ToolAnnotations(read_only_hint=model.read_only, destructive_hint=destroys),
    }
    return TypedTool(**{**said, **options}, function=function, model=model)


def _result_schema(value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a result: its value, and of a failure nothing but texts."""
    definitions = {"$defs": value.pop("$defs")} if "$defs" in value else {}
    properties = {"success": {"type": "boolean"}, "value": value}
    texts = {"additionalProperties": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": ["success"], **texts, **definitions}
