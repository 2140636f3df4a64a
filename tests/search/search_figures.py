"""What the page about the search says of its quality: tables made of the answers to the checked-in queries."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ot.config.models import Config
from ot.introspect.help import show_help
from ot.introspect.search import Catalogue
from ot.output.formats import serialize_result
from ot.registry.tool import Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from real_servers.server_table import REAL_SERVERS
from run_app import running_app
from search.search_quality import (
    Answer,
    Quality,
    lacks,
    quality,
    queries,
    real_registry,
    tasks,
    with_replaced,
    with_written,
)

TITLES = {"tuning": "first part", "held_out": "second part"}
FRESH_TITLES = {"fresh_tuning": "first part", "fresh_held_out": "second part"}


async def whole_registry() -> ToolRegistry:
    """Return the tools of the real servers and our own."""
    with tempfile.TemporaryDirectory() as place:
        async with running_app(Path(place)) as app:
            return await real_registry([app.picture.registry.pack(name) for name in ("ot", "proj", "guide")])


def row(title: str, found: Quality) -> str:
    """Return the line of a table."""
    figures = (found.recall(1), found.recall(5), found.recall(10), found.mean_reciprocal_rank)
    return f"| {title} | {len(found.answers)} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |"


def tokens_per_hit(known: ToolRegistry) -> tuple[float, float]:
    """Return the tokens of a hit and of a whole reply, on average."""
    catalogue = Catalogue(known, Config())
    replies = [
        show_help(known, Config(), lambda words, most: catalogue.find(words, most=most), query.words, "min")
        for query in queries("held_out")
    ]
    hits = [len(serialize_result(hit, "yml")) / 4 for reply in replies for hit in reply["tools"]]
    whole = [len(serialize_result(reply, "yml")) / 4 for reply in replies]
    return sum(hits) / len(hits), sum(whole) / len(whole)


def large(known: ToolRegistry) -> tuple[float, float]:
    """Return the seconds that ten thousand tools take to be indexed, and milliseconds of a search among them."""
    tools = known.tools()
    packs: dict[str, list[Tool]] = {}
    for n in range(10_000):
        tool = tools[n % len(tools)]
        packs.setdefault(f"p{n // 20}", []).append(replace(tool, pack=f"p{n // 20}", name=f"{tool.name}_{n}"))
    many = ToolRegistry(Pack(name, "proxy", lambda tools=tools: tools) for name, tools in packs.items())
    many.tools()
    started = time.process_time()
    catalogue = Catalogue(many, Config())
    built = time.process_time() - started
    asked = queries("held_out")
    started = time.process_time()
    for query in asked:
        catalogue.find(query.words, most={"tools": 8})
    return built, (time.process_time() - started) / len(asked) * 1000


def missed(answer: Answer) -> str:
    """Return a query that was not answered among the first five, as a line of a table."""
    place = f"{answer.rank}" if answer.rank else "not at all"
    return (
        f"| {answer.query.words} | `{answer.query.wanted[0]}` | {place} | `{answer.names[0] if answer.names else ''}` |"
    )


def task_lines(known: ToolRegistry) -> list[str]:
    """Return how many whole tasks are answered with every tool that they need."""
    catalogue = Catalogue(known, Config())
    lacking = {task.words: lacks(catalogue, task) for task in tasks()}
    whole = sum(not lack for lack in lacking.values())
    lines = [f"Of {len(lacking)} whole tasks, each asked in one query, {whole} find every tool they need. The others:"]
    return [*lines, "", *(f"- {words}: misses {', '.join(lack)}" for words, lack in lacking.items() if lack)]


def figures(known: ToolRegistry) -> str:
    """Return the tables."""
    parts = {part: quality(known, part) for part in TITLES}
    every = Quality(tuple(answer for found in parts.values() for answer in found.answers))
    hit, reply = tokens_per_hit(known)
    built, searched = large(known)
    wider = with_written(known)
    fresh = {part: quality(wider, part) for part in FRESH_TITLES}
    widest = with_replaced(wider)
    servers = ", ".join(f"`{server.requirement}`" for server in REAL_SERVERS.values())
    lines = [
        f"{len(known.tools())} tools, from {servers}, and our own.",
        "",
        "| queries | number | first | among five | among ten | mean reciprocal rank |",
        "|---|---|---|---|---|---|",
        *(row(TITLES[part], found) for part, found in parts.items()),
        row("all", every),
        "",
        f"Known queries over {len(wider.tools())} tools: the same, and those of",
        "`tests/search/other_servers.yaml`, which stand in for servers that need an account.",
        "",
        "| queries | number | first | among five | among ten | mean reciprocal rank |",
        "|---|---|---|---|---|---|",
        *(row(FRESH_TITLES[part], found) for part, found in fresh.items()),
        "",
        f"Queries that nothing was chosen by, over {len(widest.tools())} tools: the same, and the bundled tools of",
        "packs that a server replaces above.",
        "",
        "| queries | number | first | among five | among ten | mean reciprocal rank |",
        "|---|---|---|---|---|---|",
        row("unseen", quality(widest, "unseen")),
        "",
        *task_lines(wider),
        "",
        f"A hit costs {hit:.0f} tokens on average, a whole reply {reply:.0f} (characters / 4).",
        f"With 10,000 tools, building the index takes {built:.1f} s of one core, once, and a search {searched:.0f} ms.",
        "",
        "These queries do not find their tool among the first five:",
        "",
        "| query | wanted | place | first hit |",
        "|---|---|---|---|",
        *(missed(answer) for found in (every, fresh["fresh_tuning"]) for answer in found.missed),
        "",
    ]
    return "\n".join(lines)
