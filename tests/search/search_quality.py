"""How well the search finds what people ask for: the checked-in queries against the catalogues of real servers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from ot.build import BUNDLED, IN_WORKERS
from ot.config.models import Config
from ot.introspect.help import MAX_HITS
from ot.introspect.search import Catalogue
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from real_servers.as_packs import packs_of
from real_servers.catalogues import real_catalogues

HERE = Path(__file__).parent
FRESH = {"fresh_tuning": "tuning", "fresh_held_out": "held_out", "unseen": "unseen"}
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


@dataclass(frozen=True)
class Task:
    """Words of a whole task, and what it needs: for each need the tools of which any would do."""

    words: str
    needs: tuple[tuple[str, ...], ...]


def queries(part: str) -> list[Query]:
    """Return the queries of one list: ``tuning`` or ``held_out``, alone or with ``fresh_`` before it, or ``unseen``."""
    entries = _lists("fresh_queries.yaml")[FRESH[part]] if part in FRESH else _lists("queries.yaml")[part]
    return [Query(str(words), tuple(wanted)) for words, *wanted in entries]


def tasks() -> list[Task]:
    """Return the whole tasks."""
    return [Task(words, tuple(map(tuple, needs))) for words, *needs in _lists("fresh_queries.yaml")["tasks"]]


def lacks(catalogue: Catalogue, task: Task) -> list[str]:
    """Return what *task* needs and a reply to its words does not show."""
    shown = set(catalogue.find(task.words, most=MAX_HITS).names.get("tools", ()))
    return [need[0] for need in task.needs if not shown.intersection(need)]


def _lists(file: str) -> dict[str, Any]:
    return yaml.safe_load((HERE / file).read_text(encoding="utf-8"))


def written_packs() -> list[Pack]:
    """Return the packs of servers that want an account, as they are written down here."""
    return [_written(pack, tools) for pack, tools in _lists("other_servers.yaml").items()]


def _written(pack: str, tools: Mapping[str, str]) -> Pack:
    return Pack(pack, "proxy", lambda: [_written_tool(pack, head, said) for head, said in tools.items()], origin=pack)


def _written_tool(pack: str, head: str, said: str) -> Tool:
    name, _, rest = head.removesuffix(")").partition("(")
    given = [part.strip() for part in rest.split(",") if part.strip()]
    parameters = [Parameter(p.rstrip("?"), "keyword", "str", "'...'" if p.endswith("?") else None) for p in given]
    return Tool(pack, name, tuple(parameters), doc=said, source=f"proxy:{pack}")


async def real_registry(own: Sequence[Pack]) -> ToolRegistry:
    """Return a registry of the real servers' tools and our own packs."""
    return ToolRegistry([*bundled_packs(), *packs_of(await real_catalogues()), *own])


def bundled_packs() -> list[Pack]:
    """Return the packs that come with the server."""
    return [*BUNDLED.packs(), *(extension.pack() for extension in bundled_extensions(IN_WORKERS))]


def ask(catalogue: Catalogue, query: Query) -> Answer:
    """Return what *query* finds, looking deeper than a reply shows."""
    started = time.perf_counter()
    found = catalogue.find(query.words, most={"tools": DEEP})
    return Answer(query, found.names.get("tools", ()), time.perf_counter() - started)


def with_written(registry: ToolRegistry) -> ToolRegistry:
    """Return *registry* with the written packs beside its own."""
    return ToolRegistry([*registry.packs.values(), *written_packs()])


def with_replaced(registry: ToolRegistry) -> ToolRegistry:
    """Return *registry* with the bundled packs that a server's pack replaced, which is then ``<name>_server``."""
    packs = dict(registry.packs)
    for pack in bundled_packs():
        if packs[pack.name].source == "proxy":
            server = f"{pack.name}_server"
            packs[server], packs[pack.name] = _rename(packs[pack.name], server), pack
    return ToolRegistry(packs.values())


def _rename(pack: Pack, name: str) -> Pack:
    return replace(pack, name=name, read_tools=lambda: [replace(tool, pack=name) for tool in pack.tools.values()])


def quality(registry: ToolRegistry, part: str) -> Quality:
    """Return how well the queries of *part* are answered."""
    catalogue = Catalogue(registry, Config())
    return Quality(tuple(ask(catalogue, query) for query in queries(part)))
