"""Makes packs of what proxied servers offer."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ot.errors import ToolUnavailable
from ot.registry.server_definitions import ServerDefinitions
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack

SYNTHETIC = {
    "resources": ("resources/list", (), "List the server's resources."),
    "resource": ("resources/read", (Parameter("uri", annotation="str"),), "Read a resource of the server."),
    "prompts": ("prompts/list", (), "List the server's prompts."),
    "prompt": (
        "prompts/get",
        (Parameter("name", annotation="str"), Parameter("arguments", annotation="dict", default="None")),
        "Fill in a prompt of the server.",
    ),
}


def proxied_pack(
    server: str, pack: str, definitions: ServerDefinitions | None, why: str = "", tools: Sequence[str] = ()
) -> Pack:
    """Return the pack of a server; without *definitions* it is there, and says *why* it cannot be used yet."""

    def read() -> Iterable[Tool]:
        if definitions is None:
            raise ToolUnavailable(pack, why)
        return _tools(server, pack, definitions, tools)

    return Pack(pack, f"proxy:{server}", read, origin=f"the server {server}")


def _tools(server: str, pack: str, definitions: ServerDefinitions, patterns: Sequence[str]) -> list[Tool]:
    found = [_synthetic(server, pack, name) for name in _offered(definitions)]
    return found + [_tool(server, pack, tool) for tool in definitions.tools if _wanted(str(tool["name"]), patterns)]


def _offered(definitions: ServerDefinitions) -> list[str]:
    resources = ["resources", "resource"] if definitions.has_resources else []
    return resources + (["prompts", "prompt"] if definitions.prompts else [])


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    out = any(fnmatchcase(name, pattern[1:]) for pattern in patterns if pattern.startswith("!"))
    only = [pattern for pattern in patterns if not pattern.startswith("!")]
    return not out and (not only or any(fnmatchcase(name, pattern) for pattern in only))


def _synthetic(server: str, pack: str, name: str) -> Tool:
    method, parameters, doc = SYNTHETIC[name]
    target = json.dumps({"server": server, "method": method})
    return Tool(
        pack, name, parameters, doc=doc, source=f"proxy:{server}", backend="mcp_proxy", target=target, read_only=True
    )


def _tool(server: str, pack: str, listed: Mapping[str, Any]) -> Tool:
    schema: Mapping[str, Any] = listed.get("inputSchema") or {}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    names = {_python_name(name): name for name in properties}
    renamed = {python: name for python, name in names.items() if python != name}
    required: set[str] = set(schema.get("required") or ())
    parameters = [
        Parameter(python, "keyword", default=None if name in required else "None") for python, name in names.items()
    ]
    target = {"server": server, "tool": listed["name"]} | ({"names": renamed} if renamed else {})
    hints: Mapping[str, Any] = listed.get("annotations") or {}
    return Tool(
        pack,
        _python_name(str(listed["name"])),
        tuple(parameters),
        doc=str(listed.get("description") or ""),
        source=f"proxy:{server}",
        backend="mcp_proxy",
        target=json.dumps(target),
        destructive=bool(hints.get("destructiveHint")),
        read_only=hints.get("readOnlyHint"),
    )


def _python_name(name: str) -> str:
    python = re.sub(r"\W", "_", name)
    python = f"_{python}" if python[:1].isdigit() else python
    return f"{python}_" if keyword.iskeyword(python) else python
