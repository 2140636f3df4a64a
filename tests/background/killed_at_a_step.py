"""Processes that carry a background run out and are killed at a chosen step of the ledger: a fork each.

``python killed_at_a_step.py DIRECTORY ROUNDS`` prints a line of JSON per run: the step, what the counter took, what
the run's end says, and its entries. It is a program of its own since only a process without threads can fork safely.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from background.run_desk import ME, Counter, desk
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger

WRITES = 3
COMMAND = "return [counter.add(n=n) for n in range({first}, {last})]"
"""Each run adds numbers of its own: the same call as an unknown one of another run would be another case."""


class KeptCounter(Counter):
    """A counter whose numbers are in a file, which outlives whoever adds them."""

    def __init__(self, file: Path, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._file, self._then = file, then

    async def add(self, *, n: int) -> int:
        """Add a number."""
        with self._file.open("a") as file:
            file.write(f"{n}\n")
        self._then()
        return n * 2


def killer(times: int) -> Callable[[], None]:
    """Return what kills this process when it is called so often."""
    left = iter(range(times - 1, -1, -1))

    def reached() -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def before(cls: type, name: str, reached: Callable[[], None]) -> None:
    real = getattr(cls, name)

    def first(*args: Any, **kwargs: Any) -> Any:
        reached()
        return real(*args, **kwargs)

    setattr(cls, name, first)


def after(cls: type, name: str, reached: Callable[[], None]) -> None:
    real = getattr(cls, name)

    def then(*args: Any, **kwargs: Any) -> Any:
        value = real(*args, **kwargs)
        reached()
        return value

    setattr(cls, name, then)


def after_await(cls: type, name: str, reached: Callable[[], None]) -> None:
    real = getattr(cls, name)

    async def then(*args: Any, **kwargs: Any) -> Any:
        value = await real(*args, **kwargs)
        reached()
        return value

    setattr(cls, name, then)


STEPS: dict[str, Callable[[Callable[[], None]], None]] = {
    "the run has begun": lambda reached: after_await(SqliteLedger, "begin", reached),
    "nothing is written of the call": lambda reached: before(LedgerFile, "send", reached),
    "the call is written, and not committed": lambda reached: after(LedgerFile, "send", reached),
    "the call is committed, and not sent": lambda reached: after_await(SqliteLedger, "send", reached),
    "the call is answered": lambda reached: before(SqliteLedger, "record_end", reached),
    "the call's end is written, and not committed": lambda reached: after(LedgerFile, "write_end", reached),
    "nothing is written of the run's end": lambda reached: before(LedgerFile, "end_run", reached),
    "the run's end is written, and not committed": lambda reached: after(LedgerFile, "end_run", reached),
    "the run's end is committed": lambda reached: after_await(SqliteLedger, "end", reached),
}
ON_THE_WIRE = "the call has had its effect, and is not answered"
ONCE = {step for step in STEPS if "run" in step}


def in_a_fork(work: Callable[[], None]) -> int:
    """Return how a fork that does *work* ended."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever it is, the parent is told
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed(directory: Path, id: str, step: str) -> None:
    """Carry the run out, and be killed at *step*."""
    reached = killer(1 if step in ONCE else random.randint(1, WRITES))
    counter = KeptCounter(directory / f"{id}.txt", reached if step == ON_THE_WIRE else lambda: None)
    if step != ON_THE_WIRE:
        STEPS[step](reached)

    async def carry_out() -> None:
        async with desk(directory, counter) as one:
            await one.carrier.carry_out(id)

    asyncio.run(carry_out())


def asked(directory: Path, first: int, count: int) -> list[str]:
    """Put runs into the book, in a process of its own, and return their ids; the numbers of the first begin there."""
    ids = directory / "ids.json"

    async def ask() -> None:
        async with desk(directory) as one:
            firsts = range(first, first + count * WRITES, WRITES)
            commands = [COMMAND.format(first=first, last=first + WRITES) for first in firsts]
            ids.write_text(json.dumps([await one.add(command) for command in commands]))

    assert in_a_fork(lambda: asyncio.run(ask())) == 0
    return json.loads(ids.read_text())


async def taken_up(directory: Path, id: str, step: str, first: int) -> dict[str, Any]:
    """Return what another process makes of the run, whose numbers are told as if its *first* were 0."""
    file = directory / f"{id}.txt"
    async with desk(directory, KeptCounter(file)) as one:
        end = await one.carrier.carry_out(id)
        assert end
        found = await one.book.of_run(ME, id)
    entries = [[None if entry.value is None else entry.value // 2 - first, entry.state] for entry in found]
    added = [int(line) - first for line in file.read_text().split()] if file.exists() else []
    return {"step": step, "added": added, "state": end.state, "texts": list(end.texts), "entries": entries}


async def all_taken_up(directory: Path, runs: dict[str, str], first: int) -> None:
    for number, (id, step) in enumerate(runs.items()):
        told = await taken_up(directory, id, step, first + number * WRITES)
        sys.stdout.write(json.dumps(told) + "\n")


def one_round(directory: Path, first: int) -> None:
    """Kill a process at each step, and tell what another made of each run."""
    steps = [*STEPS, ON_THE_WIRE]
    runs = dict(zip(asked(directory, first, len(steps)), steps, strict=True))
    for id, step in runs.items():
        how = in_a_fork(lambda id=id, step=step: killed(directory, id, step))
        assert how == -signal.SIGKILL, (step, how)
    assert in_a_fork(lambda: asyncio.run(all_taken_up(directory, runs, first))) == 0


def main(directory: Path, rounds: int) -> None:
    """Do so many rounds."""
    for number in range(rounds):
        one_round(directory, number * 1000)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
