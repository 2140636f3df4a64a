"""The search finds what people ask for, in the catalogues of real servers, and quickly in far larger ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from checkout import ROOT
from ot.config.models import Config
from ot.introspect.help import show_help
from ot.introspect.search import Catalogue
from ot.output.formats import serialize_result
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from pace import TURNS, effort
from search.search_figures import whole_registry
from search.search_quality import FRESH, Quality, lacks, quality, queries, tasks, with_replaced, with_written

# The first time on a machine, the servers are installed.
pytestmark = pytest.mark.timeout(400)

PARTS = ("tuning", "held_out")


@pytest.fixture(scope="module")
def registry() -> ToolRegistry:
    """The tools of the real servers and our own."""
    return asyncio.run(whole_registry())


def test_there_are_many_queries_and_each_names_tools_that_exist(registry: ToolRegistry) -> None:
    names = {tool.full_name for tool in registry.tools()}
    every = [query for part in PARTS for query in queries(part)]
    assert len(every) >= 120
    assert len({query.words for query in every}) == len(every)
    assert [query for query in every if not names.issuperset(query.wanted)] == []


def test_no_query_quotes_a_description(registry: ToolRegistry) -> None:
    every = [query.words.lower() for part in PARTS for query in queries(part)]
    texts = " ".join(" ".join(tool.doc.lower().split()) for tool in registry.tools())
    assert [words for words in every if len(words.split()) > 2 and words in texts] == []


def test_nine_of_ten_queries_have_their_tool_among_the_first_five(registry: ToolRegistry) -> None:
    assert len(registry.tools()) >= 200
    found = Quality(tuple(answer for part in PARTS for answer in quality(registry, part).answers))
    assert found.recall(5) >= 0.90, [answer.query.words for answer in found.missed]
    assert found.recall(1) >= 0.68
    assert found.mean_reciprocal_rank >= 0.78


@pytest.mark.parametrize(("part", "number", "least"), [("fresh_tuning", 100, 0.90), ("fresh_held_out", 50, 0.88)])
def test_nine_of_ten_queries_over_a_wider_catalogue_have_theirs_too(
    registry: ToolRegistry, part: str, number: int, least: float
) -> None:
    found = quality(with_written(registry), part)
    assert len(found.answers) == number
    assert found.recall(5) >= least


def test_nine_of_ten_queries_that_nothing_was_chosen_by_have_theirs_too(registry: ToolRegistry) -> None:
    known = with_replaced(with_written(registry))
    unseen, names = queries("unseen"), {tool.full_name for tool in known.tools()}
    assert len(unseen) >= 75
    assert [query for query in unseen if not names.issuperset(query.wanted)] == []
    assert {query.words for part in (*PARTS, *FRESH) if part != "unseen" for query in queries(part)}.isdisjoint(
        query.words for query in unseen
    )
    assert quality(known, "unseen").recall(5) >= 0.91


def test_most_whole_tasks_find_every_tool_that_they_need(registry: ToolRegistry) -> None:
    known = with_written(registry)
    names = {tool.full_name for tool in known.tools()}
    assert [task for task in tasks() for need in task.needs if not names.issuperset(need)] == []
    catalogue = Catalogue(known, Config())
    lacking = {task.words: lack for task in tasks() if (lack := lacks(catalogue, task))}
    assert len(tasks()) == 20
    assert len(lacking) <= 5, lacking


def test_the_page_about_the_search_names_every_query_that_is_missed(registry: ToolRegistry) -> None:
    page = (ROOT / "docs/explanation/search.md").read_text(encoding="utf-8")
    missed = [answer.query.words for part in PARTS for answer in quality(registry, part).missed]
    assert [words for words in missed if f"| {words} |" not in page] == []


def test_a_hit_costs_few_tokens(registry: ToolRegistry) -> None:
    catalogue = Catalogue(registry, Config())
    costs: list[float] = []
    for query in queries("held_out"):
        found = show_help(registry, Config(), lambda words, most: catalogue.find(words, most=most), query.words, "min")
        costs.append(len(serialize_result(found["tools"], "yml")) / 4 / len(found["tools"]))
    assert sum(costs) / len(costs) < 80


def test_ten_thousand_tools_are_indexed_and_searched_quickly(registry: ToolRegistry) -> None:
    known = registry.tools()
    packs: dict[str, list[Tool]] = {}
    for n in range(10_000):
        tool = known[n % len(known)]
        packs.setdefault(f"p{n // 20}", []).append(replace(tool, pack=f"p{n // 20}", name=f"{tool.name}_{n}"))
    large = ToolRegistry(Pack(name, "proxy", lambda tools=tools: tools) for name, tools in packs.items())
    large.tools()
    catalogue, loops = min((indexed(large) for _ in range(TURNS)), key=lambda built: built[1])
    assert loops < 600
    words = ("create an issue on github", "delete all pages", "serch documnt", "get list show read page file issue")
    for query in words:
        assert catalogue.find(query, most={"tools": 8}).names["tools"]
        assert min(searched(catalogue, query) for _ in range(TURNS)) < 12, query


def indexed(registry: ToolRegistry) -> tuple[Catalogue, float]:
    with effort() as spent:
        catalogue = Catalogue(registry, Config())
    return catalogue, spent.loops


def searched(catalogue: Catalogue, query: str) -> float:
    with effort() as spent:
        catalogue.find(query, most={"tools": 8})
    return spent.loops
