"""What a client's servers put before its model, as far as that is known, and what OneTool puts there instead."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ot.config.paths import Paths
    from ot.workspace import Workspace

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ContextCost:
    """Tools and tokens of servers; ``unknown`` are those whose tools OneTool has never listed."""

    servers: int = 0
    tools: int = 0
    tokens: int = 0
    unknown: tuple[str, ...] = ()

    def __add__(self, other: ContextCost) -> ContextCost:
        """Return the sum of both costs."""
        return ContextCost(
            self.servers + other.servers,
            self.tools + other.tools,
            self.tokens + other.tokens,
            self.unknown + other.unknown,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for a program; tokens are an estimate."""
        return {
            "servers": self.servers, "tools": self.tools, "estimated_tokens": self.tokens, "unknown": [*self.unknown]
        }  # fmt: skip


def cost_of_servers(names: Collection[str], held: Mapping[str, str], paths: Paths) -> ContextCost:
    """Return the cost of a client's servers; *held* maps those that OneTool has too to their names here."""
    known = _load_known_tools(paths, set(held.values())) if held else {}
    total = ContextCost(len(names))
    for name in names:
        tools = known.get(held.get(name, ""))
        total += ContextCost(0, 0, 0, (name,)) if tools is None else ContextCost(0, len(tools), _tokens(tools))
    return total


def own_cost(paths: Paths) -> ContextCost:
    """Return OneTool's fixed cost: the definition of its one tool, and its instructions."""
    from ot.cli.terminal.event_loop import run_async
    from ot.errors import OneToolError
    from ot.workspace import Workspace

    async def count_chars() -> int:
        workspace = Workspace.alone(paths)
        try:
            return await own_chars(workspace)
        finally:
            await workspace.aclose()

    try:
        return ContextCost(1, 1, run_async(count_chars()) // CHARS_PER_TOKEN)
    except OneToolError:  # a configuration that cannot be used: onetool check says why
        return ContextCost(1, 0, 0, ("onetool",))


async def own_chars(workspace: Workspace) -> int:
    """Return the characters of that text and of the instructions, as *workspace* has them."""
    from ot.server.mcp_server import OneUser, build_server, count_listed_chars

    return await count_listed_chars(build_server(OneUser(workspace), "", "exact"))


def _load_known_tools(paths: Paths, names: Collection[str]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return the tools of the servers that OneTool has asked before."""
    from ot.config.load import load_config
    from ot.errors import OneToolError
    from ot.proxied.catalogue_files import FOLDER, CatalogueFiles
    from ot.proxied.spec import resolve_specs

    try:
        specs = resolve_specs(load_config(paths), paths)
    except OneToolError:
        return {}
    catalogue = CatalogueFiles(paths.global_dir / FOLDER)
    found = {name: catalogue.read(specs[name].identity) for name in names if name in specs}
    return {name: definitions.tools for name, definitions in found.items() if definitions}


def _tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(json.dumps(tool, ensure_ascii=False, default=str)) for tool in tools) // CHARS_PER_TOKEN
