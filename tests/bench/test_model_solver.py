"""A model solves tasks in the ways; what it takes is counted, and its failures are results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from benchmarks.four_ways.measure import Bench, open_bench
from benchmarks.four_ways.model_solver import Attempt, ModelSolver, summary
from benchmarks.four_ways.ways import WayName

from bench.suites import ALL_PRICES, SUITE, shop
from chat.chat_desk import PROVIDERS, calls, client_of, text
from chat.wire_server import Scripted, WireServer, serving
from onetool_chat.settings import Chat
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio
PROGRAM = {"command": ALL_PRICES.program[0]}


@pytest.fixture(scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """The bench of a shop."""
    workspace = Workspace.alone(shop(tmp_path_factory.mktemp("shop")))
    async with open_bench(workspace, ["flat", "onetool"]) as opened:
        yield opened
    await workspace.aclose()


async def attempted(bench: Bench, provider: str, way: WayName, *script: Scripted) -> tuple[Attempt, WireServer]:
    """Return how a scripted model of *provider* did, and what its service was sent."""
    async with serving(*script) as wire:
        solver = ModelSolver(lambda system: client_of(provider, wire.url, system=system), Chat(turns=3))
        only = replace(bench, ways=[one for one in bench.ways if one.name == way])
        (attempt,) = await only.ask(SUITE, solver)
        return attempt, wire


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_that_answers_rightly_passes(bench: Bench, provider: str) -> None:
    script = calls(provider, ("run", PROGRAM)), text(provider, "Saffron, that is: saffron.")
    attempt, wire = await attempted(bench, provider, "onetool", *script)
    assert (attempt.passed, attempt.problem) == (True, "")
    assert (attempt.turns, attempt.calls, attempt.failed_calls) == (2, 1, 0)
    assert attempt.input > 0
    assert attempt.output > 0
    told = json.dumps(wire.requests[0])
    assert "Write one program for `run`" in told  # the server's instructions, as a client hands them on
    assert "saffron" in json.dumps(wire.requests[1])


async def test_what_a_model_reads_of_help_is_told_apart(bench: Bench) -> None:
    look = ("run", {"command": 'ot.help(query="shop")'})
    script = calls("ollama", look), calls("ollama", ("run", PROGRAM)), text("ollama", "saffron")
    attempt, _ = await attempted(bench, "ollama", "onetool", *script)
    assert (attempt.calls, attempt.help_calls) == (2, 1)
    assert 0 < attempt.help_replies < attempt.replies


async def test_a_wrong_answer_a_failed_call_and_no_end_are_results(bench: Bench) -> None:
    wrong = text("ollama", "Tea.")
    attempt, _ = await attempted(bench, "ollama", "flat", calls("ollama", ("shop_price", {"item": 1})), wrong)
    assert (attempt.passed, attempt.failed_calls, attempt.problem) == (False, 1, "answered: Tea.")


async def test_a_model_that_never_answers_has_failed(bench: Bench) -> None:
    attempt, _ = await attempted(bench, "ollama", "flat", calls("ollama", ("shop_items", {})))
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
