"""A GitHub-like server's definitions, as such servers really write them, and an Workspace that offers them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callers import ME
from ot.execution.call_context import CallContext
from ot.execution.policy import ToolPolicy
from ot.execution.tool_executor import ToolExecutor
from ot.proxied.definition_pins import DefinitionPins
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.learned_shapes import LearnedShapes
from ot.proxied.proxied_pack import make_proxied_pack
from ot.registry.proxy_target import ServerIdentity
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.workspace import Workspace
from run_app import paths_in
from stubs import StubBackend

SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Search repositories.\n\nArgs:\n    not ours: to parse",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "repo": {"type": "string", "description": "Only in this repository"},
            "query": {"type": "string", "description": "What to search for"},
            "perPage": {"type": "number", "description": "Results a page", "minimum": 1, "maximum": 100, "default": 30},
            "sort": {"type": "string", "enum": ["stars", "updated"]},
        },
        "required": ["query"],
    },
    "annotations": {"readOnlyHint": True},
}
MERGE: dict[str, Any] = {
    "name": "merge-pull-request",
    "description": "Merge it.",
    "inputSchema": {"type": "object", "properties": {"pull-number": {"type": "integer"}}, "required": ["pull-number"]},
    "outputSchema": {"type": "object", "properties": {"merged": {"type": "boolean"}}, "required": ["merged"]},
    "annotations": {"destructiveHint": True},
}
GITHUB = ServerDefinitions((SEARCH, MERGE))


def github(definitions: ServerDefinitions | None = GITHUB, written: str = "e1", **options: Any) -> Pack:
    return make_proxied_pack(ServerIdentity("github", written), "github", definitions, **options)


def app_with(directory: Path, *packs: Pack, **config: Any) -> Workspace:
    return Workspace.alone(paths_in(directory, config), packs=packs)


class Desk:
    """A door with a proxied pack behind it, as one process after another would build it."""

    def __init__(self, directory: Path, answers: Mapping[str, Any]) -> None:
        self.directory = directory
        self.backend = StubBackend(answers)
        self.restart()

    def restart(self) -> None:
        self.pins = DefinitionPins(self.directory)
        self.shapes = LearnedShapes(self.directory)

    def door(self, definitions: ServerDefinitions, written: str = "e1") -> ToolExecutor:
        pack = github(definitions, written=written, pins=self.pins, shapes=self.shapes)
        return ToolExecutor(
            ToolRegistry([pack]),
            {"mcp_proxy": self.backend},
            policy=ToolPolicy(allow=["*"]),
            require_approved=self.pins.require_approved,
        )


CONTEXT = CallContext(ME, "run", 1, float("inf"))
