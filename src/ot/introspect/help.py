"""Help: an overview, one thing in full, or what fits some words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ot.config.models import Config
from ot.errors import did_you_mean, listing
from ot.introspect.aliases import alias_entry
from ot.introspect.listing import check_info, pack_entry, tool_entry
from ot.introspect.pages import Pages, compact_signature
from ot.introspect.search.catalogue import Hits, Kind
from ot.introspect.snippets import Expand, snippet_page
from ot.output.formats import serialize_result
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry

OVERVIEW = """\
OneTool runs Python programs that call packs of tools.

Find:    ot.help(query="words of the task")  ot.help(query="file.read")  ot.packs()  ot.tools(pattern="read")
         ot.aliases()  ot.snippets()
Levels:  info="list" names, "min" names and descriptions (default), "full" signatures, arguments and examples
Call:    file.read(path="README.md")   names may be abbreviated: file.read(p="README.md")
Compose: [r for r in file.list(path="src") if r["size"] > 1000]   the last expression is the result
At once: import asyncio
         await asyncio.gather(*[file.read(path=p) for p in paths])
Short:   an alias is called like a tool; a snippet is a whole command: $name key=value
Large:   a large result is stored: ot.result(handle="...", offset=1, limit=100, search="regex")
Format:  __format__ = "json" | "json_h" | "yml" | "yml_h" | "raw"
State:   ot.health()  ot.stats()  ot.config()  ot.version()  ot.reload()  ot.notify(topic="notes", message="...")
Tips:    search before you guess a name; do the whole task in one program; return only what matters"""

MOST: Mapping[Kind, int] = {"tools": 8, "packs": 3, "snippets": 3, "aliases": 3}
DESCRIPTION = 140
CHARACTERS_PER_TOKEN = 4
Find = Callable[[str, Mapping[Kind, int]], Hits]
"""Searches everything that there is."""


def show_help(registry: ToolRegistry, config: Config, find: Find, query: str, info: str) -> Any:
    """Return what *query* asks for: the page of a tool, a pack or an alias, or the best hits for its words."""
    check_info(info)
    query = query.strip()
    if not query:
        return OVERVIEW
    page = None if info == "list" else _exact(registry, config, query.removesuffix("()"), info)
    return page or _search(registry, config, find, query, info)


def _exact(registry: ToolRegistry, config: Config, name: str, info: str) -> str | None:
    pages = Pages(config.prompts.packs, config.docs_url)
    pack, dot, function = name.partition(".")
    if dot and pack in registry.packs and not registry.pack(pack).broken and function in registry.pack(pack).tools:
        return pages.tool(registry.tool(pack, function), registry.pack(pack), info)
    if name in registry.packs:
        return pages.pack(registry.pack(name), info)
    if name in config.aliases:
        return pages.alias(name, config.aliases[name], registry)
    return None


async def snippet_help(config: Config, query: str, info: str, expand: Expand) -> str:
    """Return the page of the snippet that ``$name`` asks for."""
    check_info(info)
    name = query.strip().removeprefix("$").split(maxsplit=1)[0] if query.strip("$ ") else ""
    if name in config.snippets:
        return f"${name}" if info == "list" else await snippet_page(name, config.snippets[name], expand)
    guess = did_you_mean(name, list(config.snippets))
    hint = f", did you mean '${guess}'?" if guess else "."
    known = listing(name, list(config.snippets)) or "none are configured"
    return f"No snippet '${name[:100]}'{hint} Snippets: {known}"


# ---------------------------------------------------------------- searching


def _search(registry: ToolRegistry, config: Config, find: Find, query: str, info: str) -> Any:
    hits = find(query, MOST)
    if not hits.names:
        return f"No matches for '{query[:100]}'. Browse with ot.tools() or ot.packs()."
    if info == "list":
        return {kind: [_called(kind, name) for name in names] for kind, names in hits.names.items()}
    found: dict[str, Any] = {}
    for kind, names in hits.names.items():
        found[kind] = [_hit(registry, config, kind, name, info) for name in names]
    if hits.unmatched:
        found["unmatched"] = list(hits.unmatched)
    return found | {"cost": f"~{len(serialize_result(found, 'yml')) // CHARACTERS_PER_TOKEN + 5} tokens"}


def _called(kind: Kind, name: str) -> str:
    return f"${name}" if kind == "snippets" else name


def _hit(registry: ToolRegistry, config: Config, kind: Kind, name: str, info: str) -> Any:
    if kind == "tools":
        tool = registry.tool(*name.split(".", 1))
        return tool_entry(tool, info) if info == "full" else _tool_hit(tool)
    if kind == "packs":
        return pack_entry(registry.pack(name), "min", config.prompts.packs)
    if kind == "snippets":
        return {"name": _called(kind, name), "description": config.snippets[name].description}
    return alias_entry(name, config.aliases[name], info)


def _tool_hit(tool: Tool) -> dict[str, str]:
    said = tool.description
    description = said if len(said) <= DESCRIPTION else f"{said[:DESCRIPTION].rsplit(' ', 1)[0]}..."
    return {"name": tool.full_name, "signature": compact_signature(tool), "description": description}
