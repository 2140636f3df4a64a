"""Finds tools, packs, snippets and aliases by the words of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from ot.config.models import Config
from ot.introspect.search_index import Field, Rule, SearchIndex
from ot.registry.tool import Tool
from ot.registry.tool_registry import ToolRegistry

Kind = Literal["tools", "packs", "snippets", "aliases"]
KINDS: tuple[Kind, ...] = ("tools", "packs", "snippets", "aliases")

# How much a word counts there, and how many words there usually are.
NAME: Rule = (8.0, 3)
PACK: Rule = (7.0, 1)
SENTENCE: Rule = (7.0, 10)
PARAMETERS: Rule = (1.0, 8)
DETAILS: Rule = (0.35, 80)
OTHER_WORDS: Rule = (5.0, 12)
TASKS: Rule = (3.0, 20)
"""Those of the bundled packs' tools."""

LEAST, LEAST_OF_ALL = 0.25, 0.15
"""Hits that score less than this share of the best of their kind, and of the best at all, are noise."""

FIRST_SENTENCE = re.compile(r"([.!?:])\s+(?=\S)|\n(?=[A-Z])")
MAX_QUERY = 500
MAX_QUERIES = 10

HITS_A_WISH = 3
"""So many hits there may be at least for each intent of a query."""


@dataclass(frozen=True, slots=True)
class SearchItem:
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

    def find(self, query: str | Sequence[str], *, most: Mapping[Kind, int]) -> Hits:
        """Return so many hits of each kind; several queries, and several intents of one, take turns and get more."""
        queries = [query] if isinstance(query, str) else query[:MAX_QUERIES]
        asked = [self._index.find_each(words[:MAX_QUERY]) for words in queries]
        worth = [self._worth_showing(wish.hits) for wishes in asked for wish in wishes]
        names = {
            kind: _in_turn([by_kind[kind] for by_kind in worth])[: _room(most.get(kind, 0), len(worth))]
            for kind in KINDS
        }
        unmatched = dict.fromkeys(word for wishes in asked for word in wishes[0].unmatched)
        return Hits({kind: names[kind] for kind in KINDS if names[kind]}, tuple(unmatched))

    def _worth_showing(self, hits: Sequence[tuple[int, float]]) -> dict[Kind, list[str]]:
        """Return the names of *hits* by kind, best first, without noise."""
        names: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
        least: dict[Kind, float] = {}
        for place, score in hits:
            item = self._items[place]
            if score >= max(least.setdefault(item.kind, score * LEAST), hits[0][1] * LEAST_OF_ALL):
                names[item.kind].append(item.name)
        return names


def _room(most: int, wishes: int) -> int:
    return min(max(most, HITS_A_WISH * wishes), 2 * most) if wishes > 1 else most


def _in_turn(rankings: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the first of each ranking, then the second of each, and so on, each name once."""
    turns = zip_longest(*rankings)
    return tuple(dict.fromkeys(name for turn in turns for name in turn if name is not None))


def items(registry: ToolRegistry, config: Config) -> Iterator[SearchItem]:
    """Yield everything that can be found."""
    for tool in registry.tools():
        bundled = registry.packs[tool.pack].bundled
        yield SearchItem("tools", tool.full_name, _of_tool(tool, bundled))
    for name, pack in registry.packs.items():
        said = f"{pack.said} {config.prompts.packs.get(name, '')}"
        yield SearchItem("packs", name, (Field(name, *NAME), Field(said, *SENTENCE)))
    for name, snippet in config.snippets.items():
        yield SearchItem("snippets", name, (Field(name, *NAME), Field(snippet.description, *SENTENCE)))
    for name, target in config.aliases.items():
        yield SearchItem("aliases", name, (Field(name, *NAME), Field(target, *SENTENCE)))


def _of_tool(tool: Tool, bundled: bool) -> tuple[Field, ...]:
    head, _, rest = FIRST_SENTENCE.sub(r"\1\n\n", tool.doc.strip(), count=1).partition("\n\n")
    words, tasks = _other_words(tool.full_name) if bundled else ("", "")
    described = " ".join(parameter.description for parameter in tool.parameters)
    return (
        Field(tool.name, *NAME),
        Field(head, *SENTENCE),
        Field(tool.pack, *PACK),
        Field(" ".join(parameter.name for parameter in tool.parameters), *PARAMETERS),
        Field(f"{rest} {described}", *DETAILS),
        Field(words, *OTHER_WORDS),
        Field(tasks, *TASKS),
    )


def _other_words(tool: str) -> tuple[str, str]:
    from ot.registry.other_words import TOOLS, OtherWords, words_of_tasks  # noqa: PLC0415 - only a search needs them

    return " ".join(TOOLS.get(tool, OtherWords()).all), words_of_tasks().get(tool, "")
