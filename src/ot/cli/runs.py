"""onetool runs: what runs did, and how those in the background are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import BACKEND, FAILURE, NOT_FOUND, OK
from ot.cli.terminal import counted, echo, echo_either, fail
from ot.cli.terminal.known_run import LEFT, KnownRun, list_lines, run_row
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.ledger.background_run import RunStatus
    from ot.ledger.entries import LedgerEntry
    from ot.ledger.sqlite_ledger import SqliteLedger

LOOK_SECONDS = 0.25
MOST_LISTED = 100

RunArgument = Annotated[str, typer.Argument(metavar="ID", help="The run's id, as its reply or 'runs list' names it.")]


# ---------------------------------------------------------------- commands


def list_(as_json: AsJson = False) -> None:
    """List your runs in the background, the latest first, and the calls of any run whose effect is unknown."""

    async def read() -> tuple[list[RunStatus], set[str], list[LedgerEntry]]:
        async with _ledger() as ledger:
            if ledger is None:
                return [], set(), []
            found = await ledger.runs(_principal(), MOST_LISTED)
            return found, set(await ledger.left_behind()), await ledger.unknown(_principal())

    statuses, left, unknown = _done(read())
    rows = [run_row(status, status.run.id in left) for status in statuses]
    echo_either(as_json, {"runs": rows, "unknown": [entry.as_row() for entry in unknown]}, list_lines(statuses))
    if as_json:
        return
    if not rows:
        echo("No runs in the background. A program starts one with ot.background(command=...).", err=True)
    for run in dict.fromkeys(entry.run for entry in unknown):
        calls = counted(sum(entry.run == run for entry in unknown), "call")
        echo(f"The effect of {calls} of run {run} is unknown: onetool runs show {run}", err=True)


def show(id: RunArgument, as_json: AsJson = False) -> None:
    """Show what a run did, what it did not do, and what nobody knows; of one in the background also its state."""
    known = _found(_done(_read(id)), id)
    echo_either(as_json, known.as_json(), [*known.state_lines(), *known.effect_lines(), *known.reply_lines()])


def follow(id: RunArgument, as_json: AsJson = False) -> None:
    """Show what a run does until it has ended; the exit code is 0 when it was brought to its end."""
    known = _done(_followed(id, as_json))
    if known.left:
        fail(f"run {id}: {LEFT}", BACKEND)
    raise typer.Exit(OK if known.state in ("", "done") else FAILURE)


def cancel(id: RunArgument, as_json: AsJson = False) -> None:
    """Stop a run in the background: what it has done stays done, and its report says what that is."""

    status, left = cancel_run(id)
    if status is None:
        fail(f"there is no run '{id}' of yours in the background: onetool runs list", NOT_FOUND)
    ended = f"Run {id} has ended: {status.state}." if status.end else f"Run {id} is asked to stop."
    echo_either(as_json, run_row(status, left), [ended + (f" But {LEFT}." if left else "")])


def cancel_run(id: str) -> tuple[RunStatus | None, bool]:
    """Want a run in the background to end; return what is known of it, and whether nobody carries it out."""

    async def stop() -> tuple[RunStatus | None, bool]:
        async with _ledger() as ledger:
            if ledger is None:
                return None, False
            return await ledger.cancel(_principal(), id), id in await ledger.left_behind()

    return _done(stop())


def open_runs() -> list[RunStatus]:
    """Return the latest runs in the background that have not ended, and that somebody carries out."""

    async def read() -> list[RunStatus]:
        async with _ledger() as ledger:
            found = await ledger.runs(_principal(), MOST_LISTED) if ledger else []
            left = set(await ledger.left_behind()) if ledger else ()
            return [status for status in found if status.end is None and status.run.id not in left]

    return _done(read())


# ---------------------------------------------------------------- the ledger


@asynccontextmanager
async def _ledger() -> AsyncGenerator[SqliteLedger | None]:
    """Yield the user's ledger, or None where no run has written anything yet."""
    from ot.config.paths import Paths
    from ot.ledger.ledger_file import LEDGER, LedgerFile
    from ot.ledger.sqlite_ledger import SqliteLedger

    file = Paths.find().global_dir / LEDGER
    if not file.exists():
        yield None
        return
    ledger = SqliteLedger(LedgerFile(file))
    try:
        yield ledger
    finally:
        await ledger.aclose()


def _done[T](work: Coroutine[Any, Any, T]) -> T:
    from ot.cli.terminal.event_loop import run_async

    return run_async(work)


def _principal() -> str:
    from ot.config.principal import os_user

    return os_user()


async def _read(id: str) -> KnownRun | None:
    async with _ledger() as ledger:
        return await _known(ledger, id) if ledger else None


async def _known(ledger: SqliteLedger, id: str) -> KnownRun | None:
    status, effects = await ledger.status(_principal(), id), await ledger.of_run(_principal(), id)
    if status is None and not effects:
        return None
    return KnownRun(id, status, effects, status is not None and id in await ledger.left_behind())


def _found(known: KnownRun | None, id: str) -> KnownRun:
    if known is None:
        why = "no run of yours has this id, or it called nothing that may change something"
        fail(f"nothing is known of '{id}': {why}. See 'onetool runs list'", NOT_FOUND)
    return known


async def _followed(id: str, as_json: bool) -> KnownRun:
    """Print what is new of a run, until it has ended or nobody carries it out; return how it is then."""
    shown: set[str] = set()
    async with _ledger() as ledger:
        while True:
            known = _found(await _known(ledger, id) if ledger else None, id)
            for line in [json.dumps(known.as_json())] if as_json else known.news():
                if line not in shown:
                    shown.add(line)
                    echo(line)
            if known.is_over:
                return known
            await asyncio.sleep(LOOK_SECONDS)
