"""A real FastMCP server of the newer protocol: structured values, resources, prompts, a question."""

from __future__ import annotations

from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult

mcp = FastMCP("hall", instructions="a hall")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


@mcp.tool
def profile() -> dict[str, Any]:
    return {"name": "Ada", "age": 36}


@mcp.tool
def nothing() -> ToolResult:
    return ToolResult(content=[])


@mcp.tool
async def welcome(ctx: Context) -> Any:
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    answers: Any = ctx.input_responses
    if answers:
        answer = answers["who"]
        return f"welcome, {answer.content['name']}" if answer.action == "accept" else answer.action
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = ElicitRequest(params=ElicitRequestFormParams(message="who?", requested_schema=schema))
    return InputRequiredResult(input_requests={"who": question})


@mcp.tool
async def rooms(ctx: Context) -> Any:
    from mcp_types import InputRequiredResult, ListRootsRequest

    answers: Any = ctx.input_responses
    if answers:
        return [[str(root.uri), root.name] for root in answers["where"].roots]
    return InputRequiredResult(input_requests={"where": ListRootsRequest()})


@mcp.resource("hall://motto", mime_type="text/plain")
def motto() -> str:
    return "plain words"


@mcp.resource("hall://room/{number}")
def room(number: int) -> str:
    return f"room {number}"


@mcp.resource("hall://logo", mime_type="image/png")
def logo() -> bytes:
    return b"\x89PNG"


@mcp.prompt
def greet(name: str) -> str:
    return f"Say hello to {name}."


if __name__ == "__main__":
    mcp.run(show_banner=False)
