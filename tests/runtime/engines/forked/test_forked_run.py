"""A forked run: its messages, its end, and data from the child that is checked before it is used."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import pytest

from no_files import NoFiles
from ot.cli.terminal.event_loop import new_runner
from ot.config.models import Limits
from ot.errors import DataTooLarge, ProgramFailed, ToolFailed, UnknownPack, UnknownTool
from ot.execution.deadline import Deadline
from ot.nearest_names import MAX_NAME, did_you_mean, listing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.forked_run import AnswerTurns, ForkedRun
from ot.runtime.engines.forked.messages import read_notice, read_request
from ot.runtime.program import parse_program
from ot.values.parts import Unread

pytestmark = pytest.mark.anyio

CALL = orjson.dumps({"t": "call", "p": "t", "f": "f", "a": [], "k": [], "w": []})


class Counted(NoFiles):
    """A pack ``t`` whose tools answer at once."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        """Answer."""
        self.calls += 1


class Listener:
    """Stands where the child does, and keeps what it is sent."""

    def __init__(self) -> None:
        self.answered: list[int] = []

    def send(self, number: int, payload: bytes) -> None:
        """Keep the number."""
        self.answered.append(number)


async def test_a_flood_of_requests_is_answered_one_a_turn_and_in_its_order() -> None:
    reach, child = Counted(), Listener()
    run = ForkedRun(parse_program("1"), reach, Limits(), Deadline.after(60), AnswerTurns())
    run._child = child  # pyright: ignore[reportAttributeAccessIssue] - all of it that an answer needs
    for number in range(1, 101):
        run._receive(number, CALL)
    assert reach.calls == 0
    for turn in range(1, 4):
        await asyncio.sleep(0)
        assert reach.calls == turn
    async with asyncio.timeout(60):
        while len(child.answered) < 100:  # noqa: ASYNC110 - what it waits for is turns of the loop
            await asyncio.sleep(0)
    assert child.answered == list(range(1, 101))


GATHER = "import asyncio\nawait asyncio.gather(t.fail(), *[t.late() for _ in range(3)])"
THREAD = """
import threading, time
threading.Thread(target=t.late, daemon=True).start()
time.sleep(0.05)
"over"
"""
BUSY_SECONDS = 0.2


class Late(NoFiles):
    """A pack whose ``late`` holds the server's loop, so that its answer goes out when the program is long over."""

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        """Fail at once, or answer late."""
        if name == "fail":
            raise ToolFailed("t.fail", "ValueError", "no")
        time.sleep(BUSY_SECONDS)  # noqa: ASYNC251 - the loop is to be held
        return 1


async def outcomes(program: str, times: int = 3) -> list[Any]:
    """Return what *program* came to, each time in a child of its own."""
    engine = ExactEngine(ready=1)
    try:
        return [await _outcome(engine, program) for _ in range(times)]
    finally:
        await engine.aclose()


async def _outcome(engine: ExactEngine, program: str) -> Any:
    try:
        return (await engine.run(parse_program(program), Late(), Limits(), Deadline.after(20))).value
    except ProgramFailed as error:
        return f"{error.kind}: {error.message}"


@pytest.mark.parametrize("runner_of", [asyncio.Runner, new_runner], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(("program", "value"), [(GATHER, "ValueError: no"), (THREAD, "over")], ids=["gather", "thread"])
def test_an_answer_that_comes_too_late_does_not_cost_the_outcome(
    runner_of: Callable[[], asyncio.Runner], program: str, value: str
) -> None:
    with runner_of() as runner:
        assert runner.run(outcomes(program)) == [value] * 3


PARTS = 1000
LONG = "r" * (MAX_NAME + 1)


def _request(**changed: Any) -> bytes:
    return json.dumps({"t": "call", "p": "file", "f": "read", "a": [], "k": [], "w": [], **changed}).encode()


@pytest.mark.parametrize("changed", [{"p": LONG}, {"f": LONG}, {"t": "member", "f": LONG}, {"k": [LONG], "w": [1]}])
def test_a_name_of_more_than_200_characters_is_malformed(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"names no tool|no such request"):
        read_request(_request(**changed), PARTS)


def test_a_name_of_200_characters_is_read() -> None:
    name = "r" * MAX_NAME
    assert read_request(_request(p=name, f=name, k=[name], w=[1]), PARTS)[:4] == (name, name, [], {name: 1})


@pytest.mark.parametrize(("said", "line"), [(3, 3), (0, None), (-1, None), (10**9, None), ("3", None), (True, None)])
def test_a_line_is_a_number_that_a_program_can_have(said: Any, line: int | None) -> None:
    assert line == read_request(_request(l=said), PARTS).line


def test_an_error_shows_and_compares_the_beginning_of_a_long_name() -> None:
    wanted, names = "r" * 1_000_000, [f"tool_{n}" for n in range(50)]
    assert len(str(UnknownPack(wanted, names))) < 1000
    assert len(str(UnknownTool(wanted, wanted, names))) < 1000
    assert did_you_mean(LONG, ["r" * MAX_NAME]) == "r" * MAX_NAME
    assert "and 30 more" in listing(wanted, names)


def test_arguments_of_too_many_parts_are_refused_unread() -> None:
    assert read_request(_request(a=[[0] * 900]), PARTS).args == [[0] * 900]
    with pytest.raises(DataTooLarge, match=r"more than 1,000 parts \(limits.value_parts\)"):
        read_request(_request(a=[[0] * 1100]), PARTS)


def test_a_value_of_too_many_parts_stays_bytes() -> None:
    ending = {"magic": {"format": "yml"}, "t": "end", "dropped": 0}
    few, many = [[0] * 900], [[0] * 1100]
    assert read_notice(_written({"v": few, **ending}), PARTS) == ({"v": few, **ending}, few)
    assert read_notice(_written({"v": many, **ending}), PARTS) == (ending, Unread(_written(many)))


@pytest.mark.parametrize(
    "message",
    [
        {"t": "end", "v": [0] * 1100, "magic": {}},
        {"t": "print", "o": [0] * 1100},
        {"t": "end", "error": [[0] * 1100, "x", 1]},
    ],
)
def test_a_message_that_is_large_elsewhere_is_malformed(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="too many parts"):
        read_notice(_written(message), PARTS)


def _written(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
