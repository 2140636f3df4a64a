"""An example of a tool, offered only with MCP_INCLUDE_EXAMPLE_TOOLS=true."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from mcp_core import Result, ToolArguments


class GreetArguments(ToolArguments):
    """Whom to greet."""

    read_only: ClassVar[bool | None] = True

    name: str = Field(min_length=1, max_length=100, description="Whom to greet")


@ToolArguments.declare
async def greet(args: GreetArguments) -> Result[str]:
    """Greet somebody, to see that the server answers."""
    return Result.ok(f"Hello, {args.name}!", instruction="Show the greeting as it is.")
