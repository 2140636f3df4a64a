"""Finds tools, packs, snippets and aliases by the words of a task: BM25 over weighted fields, forgiving of slips."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Literal

from ot.config.models import Config
from ot.introspect.search_words import joined_words, sought_words, synonyms, words_of
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
MAX_QUERY = 500

K1 = 2.4
LENGTH = 0.6
"""How much a long field counts for less."""

SYNONYM, BEGINNING, SLIP = 0.75, 0.45, 0.8
"""What a word counts that is not the one sought but a synonym of it, begins with it, or is spelt much like it."""

NAME_SAID = 0.65
"""How much more a document counts whose name the query says in full."""

MAX_BEGINNINGS = 20
LIKENESS = 72
MAX_WORDS = 32
CANDIDATES = 500
"""Once so many documents have the rarer words of a query, the others are looked for in the best of them alone."""


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

    def find(self, query: str, *, most: Mapping[Kind, int]) -> Hits:
        """Return at most so many hits of each kind."""
        found = self._index.find(query[:MAX_QUERY])
        names: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
        least: dict[Kind, float] = {}
        for place, score in found.hits:
            item = self._items[place]
            if score < max(least.setdefault(item.kind, score * LEAST), found.hits[0][1] * LEAST_OF_ALL):
                continue
            if len(names[item.kind]) < most.get(item.kind, 0):
                names[item.kind].append(item.name)
        return Hits({kind: tuple(names[kind]) for kind in KINDS if names[kind]}, found.unmatched)


def items(registry: ToolRegistry, config: Config) -> Iterator[SearchItem]:
    """Yield everything that can be found."""
    for tool in registry.tools():
        yield SearchItem("tools", tool.full_name, _of_tool(tool))
    for name, pack in registry.packs.items():
        said = f"{pack.instructions} {config.prompts.packs.get(name, '')}"
        yield SearchItem("packs", name, (Field(name, *NAME), Field(said, *SENTENCE)))
    for name, snippet in config.snippets.items():
        yield SearchItem("snippets", name, (Field(name, *NAME), Field(snippet.description, *SENTENCE)))
    for name, target in config.aliases.items():
        yield SearchItem("aliases", name, (Field(name, *NAME), Field(target, *SENTENCE)))


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


# ---------------------------------------------------------------- the index


@dataclass(frozen=True, slots=True)
class Field:
    """Some text of a document, how much a word in it counts, and how many words such a text usually has."""

    text: str
    weight: float
    usual: int


@dataclass(frozen=True, slots=True)
class IndexHits:
    """The places of documents with their scores, best first, and the words of the query that nothing has."""

    hits: tuple[tuple[int, float], ...]
    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sought:
    """A word of a query: as it was written, the indexed words that it may mean, and how telling it is."""

    written: str
    meant: Mapping[str, float]
    rarity: float


class SearchIndex:
    """An index of documents, each a name and some fields; built once, then only read."""

    def __init__(self, names: Sequence[str], fields: Iterable[Sequence[Field]]) -> None:
        """Index the documents with these *names*, the fields of each at the same place."""
        self._names = [frozenset(words_of(name)) for name in names]
        self._postings = _postings(fields)
        self._vocabulary = sorted(self._postings)
        self._synonyms = synonyms()

    def find(self, query: str) -> IndexHits:
        """Return the documents that fit *query*."""
        words = sorted(self._words(query), key=lambda word: -word.rarity)
        scores: dict[int, float] = {}
        for word in words:
            scores = _best_of(scores)
            full = len(scores) == CANDIDATES
            found = self._among(scores, word.meant) if full else self._everywhere(word.meant)
            for place, weight in found.items():
                scores[place] = scores.get(place, 0.0) + word.rarity * weight
        hits = self._by_name(scores, words)
        return IndexHits(tuple(hits), tuple(word.written for word in words if not word.meant))

    # ---------------------------------------------------------------- what a query means

    def _words(self, query: str) -> Iterator[Sought]:
        for written, word in sought_words(query)[:MAX_WORDS]:
            yield self._sought(written, word)
        for written, word in joined_words(query)[:MAX_WORDS]:
            if word in self._postings:
                yield self._sought(written, word)

    def _sought(self, written: str, word: str) -> Sought:
        meant = self._meant(word)
        # However a document says it, a word is as telling as the word itself is rare.
        known = [word] if word in self._postings else list(meant)
        having = max((len(self._postings[term]) for term in known), default=0)
        return Sought(written, meant, math.log(1 + (len(self._names) - having + 0.5) / (having + 0.5)))

    def _meant(self, word: str) -> dict[str, float]:
        meant = {term: SYNONYM for term in self._synonyms.get(word, ()) if term in self._postings}
        meant |= dict.fromkeys(self._beginning_with(word), BEGINNING)
        return meant | ({word: 1.0} if word in self._postings else dict(self._like(word)))

    def _beginning_with(self, word: str) -> list[str]:
        if len(word) < 3:
            return []
        start = bisect_left(self._vocabulary, word)
        stop = bisect_left(self._vocabulary, f"{word}\U0010ffff")
        return self._vocabulary[start : min(stop, start + MAX_BEGINNINGS)]

    def _like(self, word: str) -> Iterator[tuple[str, float]]:
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a search needs it

        if len(word) >= 3:
            near = process.extract(word, self._vocabulary, scorer=fuzz.ratio, score_cutoff=LIKENESS, limit=5)
            yield from ((term, SLIP * likeness / 100) for term, likeness, _ in near)

    # ---------------------------------------------------------------- which documents say it

    def _everywhere(self, meant: Mapping[str, float]) -> dict[int, float]:
        """Return what the word counts in each document: the way of saying it that counts most, they do not add up."""
        found: dict[int, float] = {}
        for term, factor in meant.items():
            for place, weight in self._postings[term].items():
                if found.get(place, 0.0) < weight * factor:
                    found[place] = weight * factor
        return found

    def _among(self, places: Iterable[int], meant: Mapping[str, float]) -> dict[int, float]:
        ways = [(self._postings[term], factor) for term, factor in meant.items()]
        return {place: max((of.get(place, 0.0) * factor for of, factor in ways), default=0.0) for place in places}

    def _by_name(self, scores: dict[int, float], words: Sequence[Sought]) -> list[tuple[int, float]]:
        said: dict[str, float] = {}
        for word in words:
            said |= {term: max(factor, said.get(term, 0.0)) for term, factor in word.meant.items()}

        def fit(place: int) -> float:
            name = self._names[place]
            return 1 + NAME_SAID * sum(said.get(word, 0.0) for word in name) / max(1, len(name))

        ranked = ((place, score * fit(place)) for place, score in _best_of(scores).items())
        return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))


def _best_of(scores: dict[int, float]) -> dict[int, float]:
    if len(scores) <= CANDIDATES:
        return scores
    return {place: scores[place] for place in nlargest(CANDIDATES, scores, key=scores.__getitem__)}


# ---------------------------------------------------------------- building


def _postings(documents: Iterable[Sequence[Field]]) -> dict[str, dict[int, float]]:
    """Return for each word the documents that have it, and how much it counts in each."""
    postings: dict[str, dict[int, float]] = defaultdict(dict)
    for place, fields in enumerate(documents):
        frequencies: dict[str, float] = {}
        for field in fields:
            words = words_of(field.text)
            share = field.weight / (1 - LENGTH + LENGTH * len(words) / field.usual)
            for word in words:
                frequencies[word] = frequencies.get(word, 0.0) + share
        for word, frequency in frequencies.items():
            postings[word][place] = frequency * (K1 + 1) / (K1 + frequency)
    return dict(postings)
