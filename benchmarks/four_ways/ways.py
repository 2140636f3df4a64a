"""The ways to offer the same tools to a model, each as an MCP server in this process with a client on it."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, cast, get_args

# As for the server itself, before the import: else an error of a tool fills the terminal with a picture of itself.
os.environ.setdefault("FASTMCP_ENABLE_RICH_LOGGING", "false")
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)

from benchmarks.four_ways.transcript import definition_bytes
from fastmcp import Client, FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool as McpTool
from fastmcp.tools import ToolResult
from mcp_types import Implementation
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from onetool_chat.chat_tools import ToolAnswer
from ot.errors import OneToolError
from ot.execution.call_context import CallContext
from ot.proxied.call import WRAPPED
from ot.registry.proxy_target import ProxyTarget
from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinition
from ot.server.mcp_server import OneUser, build_server
from ot.version import installed_version
from ot.workspace import Workspace

WayName = Literal["flat", "search", "codemode", "onetool"]
WAYS: tuple[WayName, ...] = get_args(WayName)
CLIENT = "bench"
"""How statistics and logs name it."""
Door = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Calls one tool through the door and returns its value."""


class Way:
    """A list of tools as one client sees it, and how they are called."""

    def __init__(self, name: WayName, client: Client[Any], definitions: Sequence[ToolDefinition]) -> None:
        """Offer *definitions*, whose calls go over *client*."""
        self.name = name
        self.definitions = definitions
        self.instructions = client.instructions or ""
        self._client = client

    @property
    def definition_bytes(self) -> int:
        """What every request carries before the first word."""
        return definition_bytes(self.definitions, self.instructions)

    async def execute(self, name: str, arguments: object) -> ToolAnswer:
        """Return what the tool *name* answers; a failure is an answer too."""
        if not isinstance(arguments, Mapping):
            return ToolAnswer("the arguments must be one JSON object", is_error=True)
        given = dict(cast("Mapping[str, Any]", arguments))
        result = await self._client.call_tool(name, given, raise_on_error=False)
        texts = [block.text for block in result.content if block.type == "text"]
        return ToolAnswer("\n".join(texts), bool(result.is_error))


@asynccontextmanager
async def open_ways(
    workspace: Workspace, tools: Sequence[Tool], names: Sequence[WayName] = WAYS
) -> AsyncGenerator[list[Way]]:
    """Yield the ways of *names* over *tools* of *workspace*: all of them share its servers and its policy."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_without_tracebacks())
        ways: list[Way] = []
        for name in names:
            server = await _onetool(workspace) if name == "onetool" else _front(name, workspace, tools)
            told = Implementation(name=CLIENT, version=installed_version())
            client: Client[Any] = await stack.enter_async_context(Client(server, client_info=told))
            listed = [
                ToolDefinition(tool.name, tool.description or "", tool.input_schema)
                for tool in await client.list_tools()
            ]
            ways.append(Way(name, client, listed))
        yield ways


@contextmanager
def _without_tracebacks() -> Generator[None]:
    """Keep what a model's program did wrong in its answer: FastMCP would also log it with a traceback."""
    logger = logging.getLogger("fastmcp")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


async def _onetool(workspace: Workspace) -> FastMCP:
    engine = await workspace.choose_engine()
    await workspace.start()  # as `onetool serve` does, before the first request
    return build_server(OneUser(workspace), installed_version(), engine)


def _front(name: WayName, workspace: Workspace, tools: Sequence[Tool]) -> FastMCP:
    transforms = {"search": [BM25SearchTransform()], "codemode": [CodeMode()]}
    front = FastMCP(name, transforms=transforms.get(name, []), on_duplicate="error")
    outputs = _output_schemas(workspace)
    for tool in tools:
        front.add_tool(_door_tool(workspace, tool, outputs.get(_own_name(tool))))
    return front


class DoorTool(McpTool):
    """One tool of a server under a name of its own, called through the door like any other."""

    door: Annotated[SkipJsonSchema[Door], Field(exclude=True)]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the tool's value as text, and as data where its server declares some."""
        try:
            value = await self.door(arguments)
        except OneToolError as error:
            return ToolResult(content=str(error), is_error=True)
        return ToolResult(content=result_text(value), structured_content=_structure_value(value, self.output_schema))


def _door_tool(workspace: Workspace, tool: Tool, output: dict[str, Any] | None) -> DoorTool:
    caller = replace(workspace.own_caller, client=CLIENT)

    async def door(arguments: Mapping[str, Any]) -> Any:
        # Without a user to ask: a tool that asks first is refused.
        context = CallContext(caller, secrets.token_hex(8), 0, float("inf"))
        value, _ = await workspace.picture.runner.executor.call(tool.pack, tool.name, (), arguments, context)
        return value

    return DoorTool(
        name=f"{tool.pack}_{tool.name}",
        description=tool.doc,
        parameters=dict(tool.input_schema or {"type": "object"}),
        output_schema=output,
        door=door,
    )


def _own_name(tool: Tool) -> tuple[str, str]:
    target = ProxyTarget.of(tool.target)
    return target.server, target.tool


def _output_schemas(workspace: Workspace) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the output schemas that servers declare, by server and by the tool's own name."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, spec in workspace.picture.servers.items():
        known = workspace.host.catalogue_files.read(spec.identity)
        for definition in known.tools if known else ():
            if schema := definition.get("outputSchema"):
                found[name, str(definition["name"])] = dict(schema)
    return found


def _structure_value(value: Any, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what stands beside the text: nothing where the server declares no output schema."""
    if schema is None:
        return None
    if schema.get(WRAPPED):
        return {"result": value}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def result_text(value: Any) -> str:
    """Return a tool's value as its server would write it: text as it is, an object of one text as that text."""
    match value:
        case str():
            return value
        case {**only} if len(only) == 1 and isinstance(text := next(iter(only.values())), str):
            return text
        case _:
            return json.dumps(value, ensure_ascii=False)
