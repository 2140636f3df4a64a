"""Definitions of real servers as packs of a registry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack
from real_servers.catalogues import Definition

TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}


def packs_of(catalogues: Mapping[str, Sequence[Definition]]) -> list[Pack]:
    """Return a pack for each server, its tools as the definitions describe them."""
    return [_pack(server, tools) for server, tools in catalogues.items()]


def _pack(server: str, definitions: Sequence[Definition]) -> Pack:
    return Pack(server, "proxy", lambda: [_tool(server, definition) for definition in definitions], origin=server)


def _tool(server: str, definition: Definition) -> Tool:
    schema = definition["inputSchema"]
    required = schema.get("required", ())
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    parameters = [_parameter(name, of, name in required) for name, of in properties.items()]
    return Tool(
        pack=server,
        name=re.sub(r"\W", "_", definition["name"]),
        parameters=tuple(sorted(parameters, key=lambda parameter: not parameter.required)),
        doc=definition.get("description", ""),
        source=f"proxy:{server}",
    )


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> Parameter:
    kind = schema.get("type")
    return Parameter(
        name=name,
        kind="keyword",
        annotation=TYPES.get(kind, "Any") if isinstance(kind, str) else "Any",
        default=None if required else repr(schema.get("default", ...)).replace("Ellipsis", "'...'"),
        description=schema.get("description", ""),
    )
