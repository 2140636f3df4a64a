"""The benchmark of models: its suite, its ways, its solver and its intervals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.four_ways.intervals import bootstrap, wilson
from benchmarks.four_ways.measure import Bench, open_bench
from benchmarks.four_ways.model_solver import Attempt, ModelSolver, summary
from benchmarks.four_ways.scripted_solver import solve
from benchmarks.four_ways.suite import BenchSuite, read_suite
from benchmarks.four_ways.ways import WAYS, WayName
from hypothesis import given
from hypothesis import strategies as some

from bench.suites import ALL_PRICES, BUY, SUITE, shop
from chat.chat_desk import PROVIDERS, calls, client_of, text
from chat.wire_server import Scripted, WireServer, serving
from onetool_chat.settings import Chat
from ot.errors import ConfigError
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio


@given(some.integers(1, 1000).flatmap(lambda n: some.tuples(some.integers(0, n), some.just(n))))
def test_a_share_lies_in_its_interval(counted: tuple[int, int]) -> None:
    passed, attempts = counted
    low, high = wilson(passed, attempts)
    assert 0 <= low <= passed / attempts + 1e-9
    assert passed / attempts - 1e-9 <= high <= 1


def test_none_of_ten_may_still_be_a_quarter() -> None:
    # The interval of Wilson's paper for 0 of 10.
    assert wilson(0, 10) == pytest.approx((0, 0.278), abs=0.001)
    assert wilson(5, 10) == pytest.approx((0.237, 0.763), abs=0.001)
    assert wilson(0, 0) == (0, 1)


@given(some.lists(some.floats(0, 1e6), min_size=1, max_size=20))
def test_a_mean_lies_between_the_least_and_the_most(values: list[float]) -> None:
    low, high = bootstrap(values)
    assert min(values) - 1e-6 <= low <= high <= max(values) + 1e-6
    assert bootstrap(values) == (low, high)


TASK = """
tasks:
  - name: one
    ask: What is in $cwd?
    answer: \\d+
    calls:
      - - files.read: {path: $cwd/a}
        - files.read: {path: $cwd/b}
      - [files.write: {path: $cwd/c, lines: [1, $way]}]
    program: files.read(path="$cwd/a")
"""


def test_a_task_has_turns_of_calls_and_programs(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(TASK)
    (task,) = read_suite(tmp_path / "suite.yaml").tasks
    assert [[tool for tool, _ in turn] for turn in task.turns] == [["files.read", "files.read"], ["files.write"]]
    assert task.tools == ["files.read", "files.write"]
    assert task.queries == ("What is in $cwd?",)
    filled = task.fill({"cwd": "/work", "way": "flat"})
    assert filled.program == ('files.read(path="/work/a")',)
    assert filled.turns[1][0][1] == {"path": "/work/c", "lines": [1, "flat"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tasks: [{name: a, ask: b}]", "answer"),
        ("tasks: [{name: a, ask: b, answer: '('}]", "not a regular expression"),
        ("tasks: [{name: a, ask: b, answer: c, colour: red}]", "colour"),
        ("tasks: [", "is not YAML"),
        ("just a text", "malformed"),
    ],
)
def test_a_malformed_suite_says_what_is_wrong(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        read_suite(file)


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


PROGRAM = {"command": ALL_PRICES.program[0]}


@pytest.fixture(scope="module")
async def bench_of_model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """The bench of a shop."""
    workspace = Workspace.alone(shop(tmp_path_factory.mktemp("shop")))
    async with open_bench(workspace, ["flat", "onetool"]) as opened:
        yield opened
    await workspace.aclose()


async def attempted(
    bench_of_model: Bench, provider: str, way: WayName, *script: Scripted
) -> tuple[Attempt, WireServer]:
    """Return how a scripted model of *provider* did, and what its service was sent."""
    async with serving(*script) as wire:
        solver = ModelSolver(lambda system: client_of(provider, wire.url, system=system), Chat(turns=3))
        only = replace(bench_of_model, ways=[one for one in bench_of_model.ways if one.name == way])
        (attempt,) = await only.ask(SUITE, solver)
        return attempt, wire


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_that_answers_rightly_passes(bench_of_model: Bench, provider: str) -> None:
    script = calls(provider, ("run", PROGRAM)), text(provider, "Saffron, that is: saffron.")
    attempt, wire = await attempted(bench_of_model, provider, "onetool", *script)
    assert (attempt.passed, attempt.problem) == (True, "")
    assert (attempt.turns, attempt.calls, attempt.failed_calls) == (2, 1, 0)
    assert attempt.input > 0
    assert attempt.output > 0
    told = json.dumps(wire.requests[0])
    assert "Write one program for `run`" in told  # the server's instructions, as a client hands them on
    assert "saffron" in json.dumps(wire.requests[1])


async def test_what_a_model_reads_of_help_is_told_apart(bench_of_model: Bench) -> None:
    look = ("run", {"command": 'ot.help(query="shop")'})
    script = calls("ollama", look), calls("ollama", ("run", PROGRAM)), text("ollama", "saffron")
    attempt, _ = await attempted(bench_of_model, "ollama", "onetool", *script)
    assert (attempt.calls, attempt.help_calls) == (2, 1)
    assert 0 < attempt.help_replies < attempt.replies


async def test_a_wrong_answer_a_failed_call_and_no_end_are_results(bench_of_model: Bench) -> None:
    wrong = text("ollama", "Tea.")
    attempt, _ = await attempted(bench_of_model, "ollama", "flat", calls("ollama", ("shop_price", {"item": 1})), wrong)
    assert (attempt.passed, attempt.failed_calls, attempt.problem) == (False, 1, "answered: Tea.")


async def test_a_model_that_never_answers_has_failed(bench_of_model: Bench) -> None:
    attempt, _ = await attempted(bench_of_model, "ollama", "flat", calls("ollama", ("shop_items", {})))
    assert not attempt.passed
    assert attempt.problem.startswith("TooManyTurns")
    assert attempt.turns == 3


def test_a_summary_tells_how_sure_it_is() -> None:
    some = [Attempt("m", "flat", "t", n < 3, 100 * n, 10, 2, 1, 0, 1.0) for n in range(1, 11)]
    (row,) = summary(some)
    assert (row["model"], row["way"], row["attempts"], row["passed"]) == ("m", "flat", 10, 2)
    assert row["pass"]["rate"] == 0.2
    assert row["pass"]["interval"] == [0.057, 0.51]
    assert row["input"]["mean"] == 550
    low, high = row["input"]["interval"]
    assert 350 < low < 550 < high < 750
