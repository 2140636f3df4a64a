"""Run by a test in a process of its own: an engine in a server whose memory the system limits."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ot.cli.terminal.event_loop import run_async
from ot.config.models import Limits
from ot.errors import RunError, ToolFailed
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Function
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

SPARE = 36 << 20
PROGRAMS = [
    *(f"'x' * {size}_000_000" for size in (12, 28)),
    "try:\n    found = t.take('x' * 24_000_000)\nexcept MemoryError:\n    found = 'caught'\nfound",
    "1 + 1",
]


class Taker:
    """A pack that takes anything."""

    given = None

    def has_pack(self, name: str) -> bool:
        """Return whether it is the one pack."""
        return name == "t"

    def member(self, pack: str, name: str) -> Function:
        """Return that everything can be called."""
        return Function()

    def saved(self, name: str) -> None:
        """Return nothing: there are none."""

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Refuse: there are none."""
        raise ToolFailed(f"file.{step}", "PermissionError", "there are no files here")

    def note_print(self, text: str) -> None:
        """Drop it."""

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        """Say how much came."""
        return len(args[0])


async def main() -> None:
    """Tell what each program came to, beside a server that may use a little more than it does now."""
    engine = ExactEngine(ready=1)
    await engine.start(Limits())
    used = address_space()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, resource.RLIM_INFINITY))
    found = [await outcome(engine, program) for program in PROGRAMS]
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await engine.aclose()
    sys.stdout.write(json.dumps(found))


def address_space() -> int:
    """Return how many bytes of addresses this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


async def outcome(engine: ExactEngine, program: str) -> str:
    """Return the program's value, shortened, or its error."""
    try:
        value = (await engine.run(parse_program(program), Taker(), Limits(), Deadline.after(60))).value
    except RunError as error:
        return str(error)
    return "long" if isinstance(value, str) and len(value) > 100 else str(value)


if __name__ == "__main__":
    run_async(main())
