"""Lists of tools and packs, from the one registry, and of aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.registry.announced_tool import has_docstring
from ot.registry.tool import Tool, signature_text
from ot.registry.tool_registry import Pack, ToolRegistry

LEVELS = ("list", "min", "full")


def check_info(info: str) -> None:
    """Raise ValueError, which names the levels, unless *info* is one."""
    if info not in LEVELS:
        raise ValueError(f"info must be one of {', '.join(LEVELS)}, not {info!r}")


def list_tools(registry: ToolRegistry, pattern: str, info: str) -> list[Any]:
    """Return the tools whose full names contain *pattern*."""
    check_info(info)
    found = [tool for tool in registry.tools() if pattern.lower() in tool.full_name.lower()]
    return [tool_entry(tool, info) for tool in found]


def tool_entry(tool: Tool, info: str) -> Any:
    """Return one tool at an info level."""
    if info == "list":
        return tool.full_name
    if info == "min":
        return {"name": tool.full_name, "description": tool.description}
    entry = {
        "name": tool.full_name,
        "signature": signature_text(tool),
        "description": tool.description,
        "source": tool.source,
    }
    return entry | docstring_parts(tool)


def docstring_parts(tool: Tool) -> dict[str, Any]:
    """Return args, returns and example of a tool, those that it has; of a proxied one as its schema tells them."""
    parts: dict[str, Any] = {}
    if described := [f"{p.name}: {p.description}" for p in tool.parameters if p.description]:
        parts["args"] = described
    if not has_docstring(tool):
        returns = tool.returns + (f"  ({tool.observed})" if tool.observed else "")
        return parts | ({"returns": returns} if tool.returns else {})
    from griffe import Docstring, DocstringSectionKind, Parser  # noqa: PLC0415 - only help needs it, at 90 ms

    for section in Docstring(tool.doc).parse(Parser.google, warnings=False):
        if section.kind is DocstringSectionKind.parameters:
            parts["args"] = [f"{argument.name}: {' '.join(argument.description.split())}" for argument in section.value]
        elif section.kind is DocstringSectionKind.returns:
            parts["returns"] = " ".join(
                f"{value.annotation or ''} {value.description}".strip() for value in section.value
            )
        elif section.kind is DocstringSectionKind.examples:
            parts["example"] = "\n".join(text for _, text in section.value).strip()
        elif section.kind is DocstringSectionKind.admonition and section.value.kind in ("example", "examples"):
            parts["example"] = section.value.contents.strip()
    return parts


def list_packs(registry: ToolRegistry, pattern: str, info: str, instructions: Mapping[str, str]) -> list[Any]:
    """Return the packs whose names contain *pattern*; *instructions* are those that the user wrote, by pack."""
    check_info(info)
    found = [registry.packs[name] for name in sorted(registry.packs) if pattern.lower() in name.lower()]
    return [pack_entry(pack, info, instructions) for pack in found]


def pack_entry(pack: Pack, info: str, instructions: Mapping[str, str]) -> Any:
    """Return one pack at an info level."""
    if info == "list":
        return pack.name
    if pack.pending:
        return {"name": pack.name, "source": pack.source, "tool_count": 0, "pending": pack.broken}
    if pack.broken:
        return {"name": pack.name, "source": pack.source, "tool_count": 0, "broken": pack.broken}
    entry: dict[str, Any] = {"name": pack.name, "source": pack.source, "tool_count": len(pack.tools)}
    if info != "full":
        return entry
    if said := instructions_of(pack, instructions):
        entry["instructions"] = said
    return entry | {"tools": [{"name": tool.full_name, "description": tool.description} for tool in sort_tools(pack)]}


def instructions_of(pack: Pack, configured: Mapping[str, str]) -> str:
    """Return a pack's instructions: the user's, else its own."""
    return (configured.get(pack.name) or pack.said).strip()


def sort_tools(pack: Pack) -> list[Tool]:
    """Return the pack's tools by name."""
    return sorted(pack.tools.values(), key=lambda tool: tool.name)


def list_aliases(aliases: Mapping[str, str], pattern: str, info: str) -> list[Any]:
    """Return the aliases whose name or target contains *pattern*."""
    check_info(info)
    wanted = pattern.lower()
    found = [name for name in sorted(aliases) if wanted in name.lower() or wanted in aliases[name].lower()]
    return [alias_entry(name, aliases[name], info) for name in found]


def alias_entry(name: str, target: str, info: str) -> Any:
    """Return one alias at an info level."""
    if info == "list":
        return name
    return f"{name} -> {target}" if info == "min" else {"name": name, "target": target}
