"""The same tools in four ways: what is listed, what is called, what it comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from benchmarks.four_ways.measure import Bench, open_bench
from benchmarks.four_ways.scripted_solver import solve
from benchmarks.four_ways.suite import BenchSuite
from benchmarks.four_ways.ways import WAYS

from bench.suites import ALL_PRICES, BUY, SUITE, shop
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """The bench of a shop."""
    workspace = Workspace.alone(shop(tmp_path_factory.mktemp("shop")))
    async with open_bench(workspace) as opened:
        yield opened
    await workspace.aclose()


async def test_every_way_solves_the_task_and_its_round_trips_are_those_of_the_rules(bench: Bench) -> None:
    rows = await bench.play(SUITE)
    assert [row["problem"] for row in rows] == [""] * 4
    # flat: items, prices, answer. search: one more. codemode: search, schemas, program, answer.
    assert {row["way"]: row["round_trips"] for row in rows} == {"flat": 3, "search": 4, "codemode": 4, "onetool": 3}
    assert {row["way"]: row["calls"] for row in rows} == {"flat": 4, "search": 6, "codemode": 4, "onetool": 3}
    flat, *others = rows
    assert flat["output"] < min(row["output"] for row in others)  # programs and detours are longer than four calls


async def test_only_flat_lists_the_tools_themselves(bench: Bench) -> None:
    listed = {way.name: [definition.name for definition in way.definitions] for way in bench.ways}
    assert listed == {
        "flat": ["shop_price", "shop_items", "shop_buy"],
        "search": ["search_tools", "call_tool"],
        "codemode": ["search", "get_schema", "execute"],
        "onetool": ["run"],
    }
    assert [row["listed"] for row in bench.definitions] == [3, 2, 3, 1]


async def test_a_tool_that_asks_first_is_refused_in_every_way(bench: Bench) -> None:
    asked = {
        "flat": ("shop_buy", {"item": "tea"}),
        "search": ("call_tool", {"name": "shop_buy", "arguments": {"item": "tea"}}),
        "codemode": ("execute", {"code": "return await call_tool('shop_buy', {'item': 'tea'})"}),
        "onetool": ("run", {"command": "shop.buy(item='tea')"}),
    }
    for way in bench.ways:
        answer = await way.execute(*asked[way.name])
        assert answer.is_error
        assert "shop.buy" in answer.text
        assert "bought tea" not in answer.text


async def test_a_tool_that_is_not_there_and_arguments_that_are_not_an_object_are_answers(bench: Bench) -> None:
    for way in bench.ways:
        assert (await way.execute("nothing", {})).is_error
        assert (await way.execute(way.definitions[0].name, "text")).is_error
        assert (await way.execute(way.definitions[0].name, {"no": "such argument"})).is_error


async def test_a_call_that_fails_is_the_tasks_problem_and_ends_it(bench: Bench) -> None:
    (row,) = [row for row in await bench.play(BenchSuite(tasks=(BUY,))) if row["way"] == "flat"]
    assert "shop.buy" in row["problem"]
    assert row["round_trips"] == 2


async def test_a_program_that_returns_something_else_has_not_solved_its_task(bench: Bench) -> None:
    onetool = bench.ways[WAYS.index("onetool")]
    wrong = ALL_PRICES.model_copy(update={"program": ("shop.items()[0]",)})
    assert "does not fit 'saffron': tea" in (await solve(wrong, onetool)).problem


async def test_a_tool_that_no_query_finds_is_searched_for_by_name(bench: Bench) -> None:
    search = bench.ways[WAYS.index("search")]
    vague = ALL_PRICES.model_copy(update={"find": ("list",)})
    transcript = await solve(vague, search)
    assert not transcript.problem
    assert [call for call, _ in transcript.exchanges[1].calls] == ["search_tools"]
    assert transcript.exchanges[1].calls[0][1] == {"query": "shop price"}


async def test_what_the_model_reads_is_counted_again_with_every_request(bench: Bench) -> None:
    transcript = await solve(ALL_PRICES, bench.ways[0])
    first, second = transcript.exchanges
    before = bench.ways[0].definition_bytes + len(ALL_PRICES.ask)
    grown = before + first.written + first.read
    assert transcript.input == before + grown + (grown + second.written + second.read)
    assert replace(transcript, exchanges=[]).input == before
