"""The last words of a forked child reach the server, whatever the server still had to say to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from no_files import NoFiles
from ot.cli.terminal.event_loop import new_runner
from ot.config.models import Limits
from ot.errors import ProgramFailed, ToolFailed
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Constant, Function, Missing
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

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

    def has_pack(self, name: str) -> bool:
        """Return whether it is the one pack."""
        return name == "t"

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return that everything can be called."""
        return Function()

    async def call(
        self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, line: int | None = None
    ) -> Any:
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
