"""How well the search finds what people ask for: the checked-in queries against the catalogues of real servers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml

from ot.build import BUNDLED
from ot.config.models import Config
from ot.introspect.search import Catalogue
from ot.registry.tool_registry import Pack, ToolRegistry
from real_servers.as_packs import packs_of
from real_servers.catalogues import real_catalogues

QUERIES = Path(__file__).parent / "queries.yaml"
DEEP = 50


@dataclass(frozen=True)
class Query:
    """Words, and the tools of which any would do."""

    words: str
    wanted: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What a query found, and how long that took."""

    query: Query
    names: tuple[str, ...]
    seconds: float

    @property
    def rank(self) -> int:
        """The place of the first tool that would do, from 1; 0 where none was found."""
        return next((place for place, name in enumerate(self.names, 1) if name in self.query.wanted), 0)


@dataclass(frozen=True)
class Quality:
    """What the answers to a set of queries amount to."""

    answers: tuple[Answer, ...]

    def recall(self, depth: int) -> float:
        """Return the share of queries that have an answer among the first *depth*."""
        return sum(0 < answer.rank <= depth for answer in self.answers) / len(self.answers)

    @property
    def mean_reciprocal_rank(self) -> float:
        """One for every answer in the first place, half of it for the second, and so on."""
        return sum(1 / answer.rank for answer in self.answers if answer.rank) / len(self.answers)

    @property
    def median_ms(self) -> float:
        """How long a query takes."""
        return median(answer.seconds for answer in self.answers) * 1000

    @property
    def missed(self) -> list[Answer]:
        """The queries without an answer among the first five."""
        return [answer for answer in self.answers if not 0 < answer.rank <= 5]


def queries(part: str) -> list[Query]:
    """Return the queries of one list: ``tuning`` or ``held_out``."""
    entries = yaml.safe_load(QUERIES.read_text(encoding="utf-8"))[part]
    return [Query(str(words), tuple(wanted)) for words, *wanted in entries]


async def real_registry(own: Sequence[Pack]) -> ToolRegistry:
    """Return a registry of the real servers' tools and our own packs."""
    return ToolRegistry([*packs_of(await real_catalogues()), *BUNDLED.packs(), *own])


def ask(catalogue: Catalogue, query: Query) -> Answer:
    """Return what *query* finds, looking deeper than a reply shows."""
    started = time.perf_counter()
    found = catalogue.find(query.words, most={"tools": DEEP})
    return Answer(query, found.names.get("tools", ()), time.perf_counter() - started)


def quality(registry: ToolRegistry, part: str) -> Quality:
    """Return how well the queries of *part* are answered."""
    catalogue = Catalogue(registry, Config())
    return Quality(tuple(ask(catalogue, query) for query in queries(part)))
