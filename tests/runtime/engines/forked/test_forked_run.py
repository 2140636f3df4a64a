"""What a child asks for is answered in turns: no run keeps the event loop to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from no_files import NoFiles
from ot.config.models import Limits
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Constant, Function, Missing
from ot.runtime.engines.forked.forked_run import AnswerTurns, ForkedRun
from ot.runtime.program import parse_program

pytestmark = pytest.mark.anyio

CALL = orjson.dumps({"t": "call", "p": "t", "f": "f", "a": [], "k": [], "w": []})


class Counted(NoFiles):
    """A pack ``t`` whose tools answer at once."""

    def __init__(self) -> None:
        self.calls = 0

    def has_pack(self, name: str) -> bool:
        """Return whether it is the one pack."""
        return name == "t"

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return that everything can be called."""
        return Function()

    async def call(
        self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, line: int | None = None
    ) -> Any:
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
