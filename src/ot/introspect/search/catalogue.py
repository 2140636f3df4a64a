"""Catalogue: everything that can be found, as documents of one search index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ot.config.models import Config
from ot.introspect.search.search_index import Field, SearchIndex
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry

Kind = Literal["tools", "packs", "snippets", "aliases"]
Rule = tuple[float, int]
KINDS: tuple[Kind, ...] = ("tools", "packs", "snippets", "aliases")

# How much a word counts there, and how many words there usually are.
NAME: Rule = (6.0, 3)
PACK: Rule = (7.0, 1)
SENTENCE: Rule = (5.5, 10)
PARAMETERS: Rule = (0.4, 8)
DETAILS: Rule = (0.4, 80)

LEAST, LEAST_OF_ALL = 0.5, 0.25
"""Hits that score less than this share of the best of their kind, and of the best at all, are noise."""

FIRST_SENTENCE = re.compile(r"([.!?:])\s+(?=\S)")
MOST_QUERY = 500


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be found."""

    kind: Kind
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """The names that fit a query by kind, best first, and the words that fitted nothing."""

    names: Mapping[Kind, tuple[str, ...]]
    unmatched: tuple[str, ...]


class Catalogue:
    """All tools, packs, snippets and aliases of one picture, indexed."""

    def __init__(self, registry: ToolRegistry, config: Config) -> None:
        """Index what *registry* and *config* hold."""
        self._items = list(items(registry, config))
        self._index = SearchIndex([item.name for item in self._items], [item.fields for item in self._items])

    def find(self, query: str, *, most: Mapping[Kind, int]) -> Hits:
        """Return at most so many hits of each kind."""
        found = self._index.find(query[:MOST_QUERY])
        names: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
        least: dict[Kind, float] = {}
        for place, score in found.hits:
            item = self._items[place]
            if score < max(least.setdefault(item.kind, score * LEAST), found.hits[0][1] * LEAST_OF_ALL):
                continue
            if len(names[item.kind]) < most.get(item.kind, 0):
                names[item.kind].append(item.name)
        return Hits({kind: tuple(names[kind]) for kind in KINDS if names[kind]}, found.unmatched)


def items(registry: ToolRegistry, config: Config) -> Iterator[Item]:
    """Yield everything that can be found."""
    for tool in registry.tools():
        yield Item("tools", tool.full_name, _of_tool(tool))
    for name, pack in registry.packs.items():
        said = f"{pack.instructions} {config.prompts.packs.get(name, '')}"
        yield Item("packs", name, (Field(name, *NAME), Field(said, *SENTENCE)))
    for name, snippet in config.snippets.items():
        yield Item("snippets", name, (Field(name, *NAME), Field(snippet.description, *SENTENCE)))
    for name, target in config.aliases.items():
        yield Item("aliases", name, (Field(name, *NAME), Field(target, *SENTENCE)))


def _of_tool(tool: Tool) -> tuple[Field, ...]:
    head, _, rest = FIRST_SENTENCE.sub(r"\1\n\n", tool.doc.strip(), count=1).partition("\n\n")
    described = " ".join(parameter.description for parameter in tool.parameters)
    return (
        Field(tool.name, *NAME),
        Field(head, *SENTENCE),
        Field(tool.pack, *PACK),
        Field(" ".join(parameter.name for parameter in tool.parameters), *PARAMETERS),
        Field(f"{rest} {described}", *DETAILS),
    )
