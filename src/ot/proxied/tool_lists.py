"""ToolLists: lists of tools as real servers write them, repaired so that one bad tool does not lose a server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import JSONRPCMessage, JSONRPCResponse
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_MODERN_VERSION

from ot.registry.clean_text import clean_line

logger = logging.getLogger(__name__)

LIST = "tools/list"
TEXTS = ("title", "description")
OBJECTS = ("annotations", "outputSchema", "execution", "_meta")


class ToolLists:
    """Mends the lists of one connection."""

    def __init__(self, server: str) -> None:
        """Mend what *server* lists."""
        self._server = server
        self._version = LATEST_MODERN_VERSION

    def repair(self, message: JSONRPCMessage) -> None:
        """Change a list of tools that the protocol's library would refuse whole into one that it takes."""
        if not isinstance(message, JSONRPCResponse):
            return
        result: dict[str, Any] = message.result
        if isinstance(result.get("protocolVersion"), str):
            self._version = result["protocolVersion"]
        listed = result.get("tools")
        if isinstance(listed, list) and self._wrong(result):
            tools = [self._tool(part, result) for part in cast("list[Any]", listed)]
            result["tools"] = [tool for tool in tools if tool is not None]

    def _wrong(self, result: Mapping[str, Any]) -> str:
        try:
            validate_server_result(LIST, self._version, result)
        except KeyError:
            return ""
        except ValueError as error:
            return clean_line(str(error), 300)
        return ""

    def _tool(self, part: Any, result: Mapping[str, Any]) -> dict[str, Any] | None:
        if not isinstance(part, dict):
            logger.warning("%s: a malformed entry of its list is left out", self._server)
            return None
        tool = repair_tool(cast("dict[str, Any]", part))
        why = self._wrong({**result, "tools": [tool]})
        if why and "outputSchema" in tool:
            del tool["outputSchema"]
            why = self._wrong({**result, "tools": [tool]})
        if why:
            logger.warning("%s: the tool %s is left out: %s", self._server, clean_line(str(tool.get("name")), 100), why)
            return None
        return tool


def repair_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition without what is not of its kind, and with a schema that says that it is of an object."""
    kept = {key: value for key, value in tool.items() if not _unkind(key, value)}
    return kept | {"inputSchema": _of_object(tool.get("inputSchema"))}


def _unkind(key: str, value: Any) -> bool:
    if key in TEXTS:
        return not isinstance(value, str)
    return (key in OBJECTS and not isinstance(value, dict)) or (key == "icons" and not isinstance(value, list))


def _of_object(schema: Any) -> dict[str, Any]:
    found = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, dict) else {}
    if not found.keys() - {"$schema", "type", "title", "description"}:
        found["additionalProperties"] = True  # it says nothing of its arguments, so any may be right
    if not isinstance(found.get("properties", {}), dict):
        del found["properties"]
    properties: dict[str, Any] = found.get("properties", {})
    if any(not isinstance(part, dict | bool) for part in properties.values()):
        found["properties"] = {name: part if isinstance(part, dict | bool) else {} for name, part in properties.items()}
    required: Any = found.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        del found["required"]
    return found | {"type": "object"}
