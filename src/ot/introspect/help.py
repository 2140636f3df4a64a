"""Help on tools and packs: an overview, one thing in full, or what fits some words."""

from __future__ import annotations

from typing import Any

from ot.introspect.listing import check_info, docstring_parts, pack_entry, tool_entry
from ot.registry.signature import signature_text
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry

OVERVIEW = """\
OneTool runs Python programs that call packs of tools.

Find:    ot.packs()  ot.tools(pattern="read")  ot.help(query="search files")  ot.help(query="file.read")
Levels:  info="list" names, "min" names and descriptions, "full" signatures, arguments and examples
Call:    file.read(path="README.md")   names may be abbreviated: file.read(p="README.md")
Compose: [r for r in file.list(path="src") if r["size"] > 1000]   the last expression is the result
At once: import asyncio
         await asyncio.gather(*[file.read(path=p) for p in paths])
Large:   a large result is stored: ot.result(handle="...", offset=1, limit=100, search="regex")
Format:  __format__ = "json" | "json_h" | "yml" | "yml_h" | "raw"
State:   ot.health()  ot.stats()  ot.config()  ot.version()  ot.reload()"""
MOST_HITS = 10


def show_help(registry: ToolRegistry, query: str, info: str) -> Any:
    """Return what *query* asks for: a tool, a pack, or the best hits for its words."""
    check_info(info)
    query = query.strip()
    if not query:
        return OVERVIEW
    pack, dot, name = query.partition(".")
    if dot and pack in registry.packs and name in registry.pack(pack).tools:
        return tool_help(registry.tool(pack, name))
    if query in registry.packs:
        return pack_entry(registry.pack(query), "full")
    hits = search_tools(registry, query)
    if not hits:
        return f"No matches for '{query[:100]}'. Browse with ot.packs() or ot.tools()."
    return [tool_entry(tool, info) for tool in hits]


def tool_help(tool: Tool) -> str:
    """Return everything about one tool, as text to read."""
    parts = docstring_parts(tool)
    text = f"# {tool.full_name}\n{tool.description}\n\n{signature_text(tool)}\n"
    if "args" in parts:
        text += "\nArgs:\n" + "".join(f"  {line}\n" for line in parts["args"])
    if "returns" in parts:
        text += f"\nReturns: {parts['returns']}\n"
    if "example" in parts:
        text += f"\nExample:\n  {parts['example'].replace(chr(10), chr(10) + '  ')}\n"
    return text.rstrip()


def search_tools(registry: ToolRegistry, query: str) -> list[Tool]:
    """Return the tools that fit the words of *query* best."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - only a search needs it

    words = query.lower().split()
    scored: list[tuple[float, str, Tool]] = []
    for tool in registry.tools():
        name, text = tool.full_name.lower(), f"{tool.full_name} {tool.description}".lower()
        hits = sum(3 if word in name else 1 for word in words if word in text)
        score = hits / len(words) * 100 + fuzz.WRatio(query.lower(), name) / 10
        if hits or fuzz.WRatio(query.lower(), name) >= 80:
            scored.append((-score, tool.full_name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda entry: entry[:2])[:MOST_HITS]]
