"""Help: an overview, the page of one thing, or what fits some words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ot.config.models import Config
from ot.introspect.listing import (
    alias_entry,
    check_info,
    docstring_parts,
    instructions_of,
    pack_entry,
    sort_tools,
    tool_entry,
)
from ot.introspect.search import Hits, Kind
from ot.introspect.snippets import Expand, snippet_page
from ot.nearest_names import did_you_mean, listing, nearest_names
from ot.registry.announced_tool import has_docstring
from ot.registry.tool import Parameter, Tool, signature_text
from ot.registry.tool_loader import load_tool
from ot.registry.tool_registry import Pack, ToolRegistry

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
Long:    ot.background(command="...", name="...") goes on after its run   ot.run_state(id="...")  ot.cancel(id="...")
Format:  __format__ = "json" | "json_h" | "yml" | "yml_h" | "raw"
State:   ot.health()  ot.stats()  ot.config()  ot.version()  ot.reload()  ot.notify(topic="notes", message="...")
Tips:    search before you guess a name; do the whole task in one program; return only what matters"""

MAX_HITS: Mapping[Kind, int] = {"tools": 5, "packs": 3, "snippets": 3, "aliases": 3}
DESCRIPTION = 120
MAX_LEFT_OUT = 10
NEAREST_PACKS = 3
VALUES = {"int": "1", "float": "1.0", "bool": "True", "list": "[]", "dict": "{}"}
"""What stands for a value in an example, by the first word of its type; anything else is text."""

SIGNATURE = 140
"""Characters of the parameters in a compact signature, unless more must be given."""
RESULT = 100
"""Characters of a result's type in a compact signature, if leaving out what is nested makes it so short."""
IN_FULL, FURTHER = 2, 0.6
"""How many hits have full room, and the share of it that each further one has."""
NESTED = re.compile(r"\{[^{}]*\}")
KEPT_LAST = "limit"
"""The parameter that most calls give: it is left out last."""
SLUGS = {
    "brave": "brave-search",
    "code": "code-search",
    "db": "database",
    "ground": "grounding-search",
    "llm": "transform",
    "web": "web-fetch",
}
"""Packs whose page has another name than the pack."""
WORD = re.compile(r"\w+")
Query = str | Sequence[str]
Find = Callable[[Query, Mapping[Kind, int]], Hits]
"""Searches everything that there is."""


def show_help(registry: ToolRegistry, config: Config, find: Find, query: Query, info: str) -> Any:
    """Answer *query*: with the page of a tool, a pack or an alias, or with the best hits for its words.

    Several queries are searched for together.
    """
    check_info(info)
    if not isinstance(query, str):
        return _search(registry, config, find, [str(words) for words in query], info) if query else OVERVIEW
    query = query.strip()
    if not query:
        return OVERVIEW
    page = None if info == "list" else _exact(registry, config, _name_in(query), info)
    return page or _search(registry, config, find, query, info)


def is_search(registry: ToolRegistry, config: Config, query: Query, info: str) -> bool:
    """Return whether *query* is looked for among everything, so that it does not name one thing."""
    if not isinstance(query, str):
        return bool(query)
    name = _name_in(query)
    is_name = name.partition(".")[0] in registry.packs or name in config.aliases
    return bool(name) and (info == "list" or not is_name)


def _name_in(query: str) -> str:
    """Return the name that *query* may be: a call of a tool names that tool."""
    name, bracket, _ = query.strip().partition("(")
    return name.strip() if bracket and query.rstrip().endswith(")") else query.strip()


def _exact(registry: ToolRegistry, config: Config, name: str, info: str) -> str | None:
    pages = HelpPages(config.prompts.packs, config.docs_url)
    pack, dot, function = name.partition(".")
    if dot and (tool := load_tool(registry, pack, function)):
        return pages.tool(tool, registry.pack(pack), info)
    if name in registry.packs:
        return pages.pack(registry.pack(name))
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


def _search(registry: ToolRegistry, config: Config, find: Find, query: Query, info: str) -> Any:
    words = _join_query(query)
    found = find_hits(registry, config, find, query, info)
    if not found:
        near = ", ".join(nearest_names(words, list(registry.packs), NEAREST_PACKS))
        return f"No matches for '{words[:100]}'. Nearest packs: {near}. Browse with ot.tools() or ot.packs()."
    return found


def find_hits(registry: ToolRegistry, config: Config, find: Find, query: Query, info: str) -> dict[str, Any]:
    """Return the best hits for *query* by kind, and the words that fitted nothing; nothing where nothing fits."""
    hits = find(query, MAX_HITS)
    names = _with_named_packs(registry, hits.names, _join_query(query))
    if info == "list":
        return {kind: [_display_name(kind, name) for name in found] for kind, found in names.items()}
    found: dict[str, Any] = {
        kind: [_hit(registry, config, kind, name, info, place < IN_FULL) for place, name in enumerate(some)]
        for kind, some in names.items()
    }
    return found | ({"unmatched": list(hits.unmatched)} if found and hits.unmatched else {})


def _join_query(query: Query) -> str:
    return query if isinstance(query, str) else ", ".join(query)


def _with_named_packs(
    registry: ToolRegistry, names: Mapping[Kind, tuple[str, ...]], words: str
) -> dict[Kind, tuple[str, ...]]:
    """Return *names* with the packs that *words* name and that have no tools to be found by."""
    said = set(WORD.findall(words.lower()))
    named = [name for name, pack in registry.packs.items() if name.lower() in said and pack.broken]
    packs = tuple(dict.fromkeys([*named, *names.get("packs", ())]))
    return {**names, "packs": packs} if packs else dict(names)


def _display_name(kind: Kind, name: str) -> str:
    return f"${name}" if kind == "snippets" else name


def _hit(registry: ToolRegistry, config: Config, kind: Kind, name: str, info: str, likely: bool) -> Any:
    if kind == "tools":
        tool = registry.tool(*name.split(".", 1))
        return tool_entry(tool, info) if info == "full" else _tool_hit(tool, likely)
    if kind == "packs":
        pack = registry.pack(name)
        return pack_entry(pack, "min", config.prompts.packs) | _what_to_do(pack) if pack.broken else name
    if kind == "snippets":
        return {"name": _display_name(kind, name), "description": config.snippets[name].description}
    return alias_entry(name, config.aliases[name], info)


def _what_to_do(pack: Pack) -> dict[str, str]:
    """Say how to get the tools of a pack that shows none."""
    if pack.pending:
        return {"do": f'ot.help(query="{pack.name}") asks it for its tools'}
    how = (
        "ot.health() shows the state of its server"
        if pack.source == "proxy"
        else "tell the user, who can repair its file"
    )
    return {"do": f"{how}; do without it for now"}


def _tool_hit(tool: Tool, likely: bool) -> dict[str, str]:
    share = 1.0 if likely else FURTHER
    signature, said = compact_signature(tool, share), brief_description(tool, share)
    return {"name": tool.full_name, "signature": signature, "description": said}


def brief_description(tool: Tool, share: float = 1.0) -> str:
    """Return a tool's description, cut to a length that keeps lists readable, or to a *share* of that."""
    said, most = tool.description, int(DESCRIPTION * share)
    return said if len(said) <= most else f"{said[:most].rsplit(' ', 1)[0]}..."


# ---------------------------------------------------------------- pages


@dataclass(frozen=True)
class HelpPages:
    """Writes pages: with these *instructions* of packs, and addresses made of *docs*."""

    instructions: Mapping[str, str]
    docs: str

    def tool(self, tool: Tool, pack: Pack, info: str = "min", facts: Sequence[str] = ()) -> str:
        """Return everything that a caller of *tool*, which is of *pack*, needs; "full" adds all that is known.

        *facts* are lines that only the caller of this knows, added to those.
        """
        parts = docstring_parts(tool)
        # A proxied tool's text is shown whole: it is not made of parts that are shown below.
        told = tool.description if has_docstring(tool) else tool.doc
        text = f"# {tool.full_name}\n{told}\n\n{signature_text(tool)}\n"
        said = dict(line.partition(": ")[::2] for line in parts.get("args", ()))
        # The signature has the types; an argument of which nothing is said is in it, too.
        args = [f"  {known.name}: {said[known.name]}\n" for known in tool.parameters if said.get(known.name)]
        text += "\nArgs:\n" + "".join(args) if args else ""
        text += _returns(tool, parts.get("returns", ""))
        example = parts.get("example") or example_call(tool)
        text += f"\nExample:\n  {example.replace(chr(10), chr(10) + '  ')}\n"
        return text + (_everything(tool, facts) if info == "full" else "") + self._docs(pack)

    def pack(self, pack: Pack) -> str:
        """Return how to use *pack*, and its tools with their signatures."""
        if pack.pending:
            return f"# {pack.name}\nWhat this pack offers is not known yet: {pack.broken}"
        if pack.broken:
            return f"# {pack.name}\nThis pack cannot be used: {pack.broken}"
        said = instructions_of(pack, self.instructions)
        example = worked_example(pack)
        lines = [f"# {pack.name}", *([example, ""] if example else []), *([said, ""] if said else []), "Tools:"]
        for tool in sort_tools(pack):
            said = f": {tool.description}" if tool.description else ""
            lines.append(f"- {tool.full_name}{compact_signature(tool)}{said}")
        left_out = [f"- {name}: {why}" for name, why in list(pack.left_out.items())[:MAX_LEFT_OUT]]
        lines += ["", f"Left out, {len(pack.left_out)} in all:", *left_out] if left_out else []
        return "\n".join(lines) + "\n" + self._docs(pack)

    def alias(self, name: str, target: str, registry: ToolRegistry) -> str:
        """Return the target of the alias *name*."""
        pack, _, function = target.partition(".")
        tool = load_tool(registry, pack, function)
        text = f"# {name}\nAlias of {target}\n"
        if tool is None:
            return f"{text}\nThere is no tool {target}: the alias cannot be used."
        call = example_call(tool).removeprefix(target)
        return f"{text}{tool.description}\n\nUse: {name}{call} means {target}{call}\nMore: ot.help(query='{target}')"

    def _docs(self, pack: Pack) -> str:
        """Return where the page of a bundled pack is; other packs and servers have none."""
        slug = SLUGS.get(pack.name, pack.name)
        return f"\nDocs: {self.docs.replace('{doc_slug}', slug)}" if pack.bundled and self.docs else ""


def compact_signature(tool: Tool, share: float = 1.0) -> str:
    """Return ``(query: str, limit: int = 10, ...) -> list``: what must be given, and what there is room for.

    Of the rest the longest are left out first, and ``limit`` last. A *share* of the usual room may be given.
    """
    given = sorted(tool.parameters, key=lambda parameter: not parameter.required)
    texts = {parameter.name: _parameter(parameter) for parameter in given}
    optional = [parameter.name for parameter in given if not parameter.required]
    kept = sorted(optional, key=lambda name: (name != KEPT_LAST, len(texts[name])))
    while kept and len(", ".join(texts.values())) > SIGNATURE * share:
        del texts[kept.pop()]
    shown = [*texts.values(), *(["..."] if len(texts) < len(given) else [])]
    returns = _shorten_type(tool.returns or tool.observed, RESULT * share)
    return f"({', '.join(shown)})" + (f" -> {returns}" if returns else "")


def _shorten_type(kind: str, most: float) -> str:
    """Return a type without what its innermost objects hold, as long as it is longer than *most*."""
    while len(kind) > most and kind.count("{") > 1:
        kind = NESTED.sub("dict", kind, count=1)
    return kind


def _parameter(parameter: Parameter) -> str:
    mark = {"args": "*", "kwargs": "**"}.get(parameter.kind, "")
    # In double quotes, so that YAML's single ones need no escapes around them.
    quoted = (parameter.default or "").replace("'", '"') if '"' not in (parameter.default or "") else parameter.default
    default = f" = {quoted}" if parameter.default is not None else ""
    return f"{mark}{parameter.name}" + (f": {parameter.annotation}" if parameter.annotation else "") + default


def worked_example(pack: Pack) -> str:
    """Return the example that says most among those of the tools of *pack* that change nothing, else of all."""
    harmless = [tool for tool in pack.tools.values() if tool.read_only] or list(pack.tools.values())
    examples = (example for tool in harmless if (example := docstring_parts(tool).get("example", "")))
    return max((example for example in examples if "\n" not in example), key=len, default="")


def example_call(tool: Tool) -> str:
    """Return a call of *tool* that gives what must be given."""
    given = [f"{known.name}={_value(known)}" for known in tool.parameters if known.required]
    return f"{tool.full_name}({', '.join(given)})"


def _value(parameter: Parameter) -> str:
    kind = WORD.match(parameter.annotation)
    return VALUES.get(kind[0], repr("...")) if kind else "{}" if parameter.annotation.startswith("{") else repr("...")


def _returns(tool: Tool, said: str) -> str:
    # The signature above has the type; the description of a proxied tool's value may be just that.
    return f"\nReturns: {said}\n" if said and not (tool.returns and said.startswith(tool.returns)) else ""


def _everything(tool: Tool, more: Sequence[str]) -> str:
    head, _, rest = tool.doc.strip().partition("\n\n")
    prose = rest.partition("Args:\n")[0].strip() if rest else ""
    known = {"read-only": tool.read_only, "destructive": tool.destructive or None}
    facts = [f"{word}: {'yes' if value else 'no'}" for word, value in known.items() if value is not None]
    facts += [f"time limit: {tool.timeout:g} s"] if tool.timeout else []
    lines = [f"Source: {tool.source}", *facts, *more]
    return (f"\nNotes:\n{prose}\n" if prose and head else "") + "\n" + "\n".join(lines) + "\n"
