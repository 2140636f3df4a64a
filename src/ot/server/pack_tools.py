"""Tools of packs for programs on other hosts: what is listed is what the packs are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from weakref import WeakKeyDictionary

from fastmcp.server.providers import Provider
from fastmcp.tools import Tool as McpTool
from fastmcp.utilities.versions import VersionSpec

from ot.registry.announced_tool import META, announcement, revision_of
from ot.registry.tool_definitions import ToolDefinitions, parameters_schema
from ot.registry.tool_registry import ToolRegistry
from ot.server.classic_tools import Answer, ClassicTool, annotations_of
from ot.workspace import Workspace


class PackTools(Provider):
    """Lists the tools of some packs of a workspace, announced with their signatures."""

    def __init__(self, workspace: Workspace, packs: Sequence[str], answer: Answer) -> None:
        """Offer *packs*, as *workspace* has them; *answer* answers the calls."""
        super().__init__()
        self._workspace = workspace
        self._packs = tuple(packs)
        self._answer = answer
        self._made: WeakKeyDictionary[ToolRegistry, Mapping[str, ClassicTool]] = WeakKeyDictionary()
        self._revisions: WeakKeyDictionary[ToolRegistry, str] = WeakKeyDictionary()

    @property
    def instructions(self) -> str:
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

    def revision(self, registry: ToolRegistry) -> str:
        """Return what changes when another list of tools is due, as *registry* has them."""
        if registry not in self._revisions:
            tools = ToolDefinitions.choose(registry, self._packs).by_name.values()
            self._revisions[registry] = revision_of((tool.doc, announcement(tool)) for tool in tools)
        return self._revisions[registry]
