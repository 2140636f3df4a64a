"""Tools of packs one by one, for classic MCP clients whose models write no programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastmcp import Context
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool as McpTool
from fastmcp.tools import ToolResult
from mcp_types import ToolAnnotations
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinitions

OneAnswer = Callable[[Mapping[str, Any], Context], Awaitable[ToolResult]]
Answer = Callable[[Tool, Mapping[str, Any], Context], Awaitable[ToolResult]]
"""Answers one call of a tool."""


class ClassicTool(McpTool):
    """One tool under a name of its own; the door checks its arguments, as it does for programs."""

    answer: Annotated[SkipJsonSchema[OneAnswer], Field(exclude=True)]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the tool's answer; a failure is an answer too."""
        return await self.answer(arguments, get_context())


def annotations_of(tool: Tool) -> ToolAnnotations:
    """Return the hints of *tool*; what it says nothing of is left out."""
    return ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=tool.destructive)


def classic_tools(definitions: ToolDefinitions, answer: Answer) -> list[ClassicTool]:
    """Return a tool of the protocol for each of *definitions*, each call of which goes to *answer*."""
    return [
        ClassicTool(
            name=definition.name,
            description=definition.description,
            parameters=dict(definition.parameters),
            annotations=annotations_of(tool),
            output_schema=None,
            answer=partial(answer, tool),
        )
        for definition, tool in zip(definitions.all, definitions.by_name.values(), strict=True)
    ]
