"""Tools of packs for programs on other hosts: what is listed is what the packs are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers import Provider
from fastmcp.tools import Tool as McpTool
from fastmcp.utilities.versions import VersionSpec

from onetool_team.packs.formed_replies import form_failure, form_reply
from ot.errors import InvalidArguments
from ot.execution.caller import Caller
from ot.registry.announced_tool import META, announcement, revision_of
from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinitions, parameters_schema
from ot.registry.tool_registry import ToolRegistry
from ot.runtime.reply import BareReply
from ot.runtime.run_events import TellEvent
from ot.server.classic_tools import Answer, ClassicTool, annotations_of
from ot.server.front import Front
from ot.server.mcp_server import read_or_refuse
from ot.server.pack_calls import FormedReply
from ot.values.plain import where_quick
from ot.workspace import Workspace
from ot_sdk import tagged


class PackTools(Provider):
    """Lists the tools of some packs of a workspace, announced with their signatures."""

    def __init__(self, packs: Sequence[str], front: Front, answer: Answer) -> None:
        """Offer *packs*, as the workspace of *front* has them; *answer* answers the calls."""
        super().__init__()
        self._front = front
        self._workspace = front.workspace
        self._packs = tuple(packs)
        self._answer = answer
        self._made: WeakKeyDictionary[ToolRegistry, Mapping[str, ClassicTool]] = WeakKeyDictionary()
        self._revisions: WeakKeyDictionary[ToolRegistry, str] = WeakKeyDictionary()

    @property
    def _instructions(self) -> str:
        """How to use the packs, in their own words."""
        packs = self._workspace.picture.registry.packs
        return "\n\n".join(packs[name].said for name in self._packs if name in packs and packs[name].said)

    async def _list_tools(self) -> Sequence[McpTool]:
        await self._workspace.definitions_of(self._packs)
        return list(self._current().values())

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> McpTool | None:
        if name not in self._current():
            await self._workspace.definitions_of(self._packs)
        return self._current().get(name)

    def _current(self) -> Mapping[str, ClassicTool]:
        registry = self._workspace.picture.registry
        if registry not in self._made:
            self._made[registry] = self._tools(registry)
        return self._made[registry]

    def _tools(self, registry: ToolRegistry) -> dict[str, ClassicTool]:
        definitions = ToolDefinitions.choose(registry, self._packs)
        return {
            name: ClassicTool(
                name=name,
                description=tool.doc,
                parameters=parameters_schema(tool),
                annotations=annotations_of(tool),
                meta={META: announcement(tool)},
                output_schema=None,
                answer=partial(self._answer, tool),
            )
            for name, tool in definitions.by_name.items()
        }

    def attach(self, server: FastMCP) -> None:
        """Add the tools to *server*, and a way to read a stored result in pages, whatever its size."""
        server.instructions = self._instructions
        server.add_provider(self)

        @server.resource("ot://result/{handle}/{start}", description="The bytes of a stored result from there on")
        async def result_bytes(handle: str, start: int) -> bytes:  # pyright: ignore[reportUnusedFunction] - registered
            async with self._front.receive(get_context()) as (workspace, caller):
                read = partial(workspace.stored_bytes, handle, start, caller.principal)
                return await anyio.to_thread.run_sync(read_or_refuse, read)

    async def carry_out(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        workspace: Workspace,
        *,
        caller: Caller,
        tell: TellEvent | None = None,
        key: str = "",
    ) -> FormedReply:
        """Return what a call of *tool* comes to, for another OneTool; a failure is a reply too."""
        try:
            given = await where_quick(arguments, lambda: tagged.decode(dict(arguments)))
        except ValueError as error:
            why = f"{tool.full_name}(): the arguments are malformed: {error}"
            return form_failure(InvalidArguments(tool.full_name, why))
        reply = await workspace.call(tool.pack, tool.name, given, caller, tell=tell, bare=True, key=key)
        assert isinstance(reply, BareReply)
        revision = self.revision(workspace.picture.registry)
        return await form_reply(reply, tool, workspace, caller.principal, revision)

    def revision(self, registry: ToolRegistry) -> str:
        """Return a value that changes when the list of tools in *registry* does."""
        if registry not in self._revisions:
            tools = ToolDefinitions.choose(registry, self._packs).by_name.values()
            self._revisions[registry] = revision_of((tool.doc, announcement(tool)) for tool in tools)
        return self._revisions[registry]
