"""An example of a tool, offered only with MCP_INCLUDE_EXAMPLE_TOOLS=true."""

from __future__ import annotations

from pydantic import Field

from mcp_core import Result, ToolArguments
from mcp_guide.tools import ReadingArguments


class GreetArguments(ReadingArguments):
    name: str = Field(min_length=1, max_length=100, description="Whom to greet")


@ToolArguments.declare
async def greet(args: GreetArguments) -> Result[str]:
    """Greet somebody, to see that the server answers."""
    return Result.ok(f"Hello, {args.name}!", instruction="Show the greeting as it is.")
