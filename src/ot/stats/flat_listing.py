"""How large a flat list of all tools would be, which a client would send to its model with every request."""

from __future__ import annotations

import json
import time
from typing import Any

from ot.errors import ToolUnavailable
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry

PAUSE_SECONDS = 0.005
"""Between packs: reading hundreds of them must not take the processor from runs."""
TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
OUR_OWN = ("ot", "proj")
"""Packs that are there because of OneTool: without it, nobody would list them."""


def flat_chars(registry: ToolRegistry) -> int:
    """Return the characters of a ``tools/list`` with one entry a tool, as JSON; it takes its time."""
    total = 0
    for name, pack in registry.packs.items():
        if name not in OUR_OWN:
            total += _pack_chars(pack)
            time.sleep(PAUSE_SECONDS)
    return total


def definition(tool: Tool) -> dict[str, Any]:
    """Return the entry of *tool* in such a list."""
    schema = tool.input_schema or {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in tool.parameters},
        "required": [parameter.name for parameter in tool.parameters if parameter.required],
    }
    return {"name": f"{tool.pack}_{tool.name}", "description": tool.doc, "inputSchema": dict(schema)}


def _pack_chars(pack: Pack) -> int:
    try:
        # Read anew and let go of: kept, the tools of packs that nobody uses would only fill the memory.
        tools = pack.tools.values() if "tools" in vars(pack) else pack.read_tools()
        return sum(len(json.dumps(definition(tool), ensure_ascii=False, default=str)) for tool in tools)
    except ToolUnavailable:
        return 0


def _property(parameter: Parameter) -> dict[str, Any]:
    kind = TYPES.get(parameter.annotation.partition("[")[0].strip())
    found: dict[str, Any] = {"type": kind} if kind else {}
    return found | ({"description": parameter.description} if parameter.description else {})
