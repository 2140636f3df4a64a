"""onetool runs: what runs did, and how those in the background are."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.brief_repr import quote_text
from ot.cli.exit_codes import BACKEND, FAILURE, NOT_FOUND, OK
from ot.cli.terminal import columns, echo, echo_either, fail, pluralize
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.files.kept_run import KeptRun
    from ot.files.run_images import ImageStore
    from ot.ledger.background_run import RunStatus
    from ot.ledger.entries import LedgerEntry
    from ot.ledger.sqlite_ledger import SqliteLedger


MAX_PLACE = 200
LEFT = "nobody carries it out: its server has ended, and the next one started in its directory reports on it"


@dataclass(frozen=True)
class KnownRun:
    """A run, of which the calls that may have changed something are known; one in the foreground has no status."""

    id: str
    status: RunStatus | None
    effects: Sequence[LedgerEntry]
    left: bool = False
    """Whether it has not ended and nobody alive carries it out."""
    kept: KeptRun | None = None
    """What is known of the files and notes that it changed."""

    @property
    def state(self) -> str:
        """The state of a run in the background."""
        return self.status.state if self.status else ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        if self.status:
            return self.left or self.status.end is not None
        return all(entry.state != "sent" for entry in self.effects)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        calls = [entry.as_row() for entry in self.effects]
        undo = {"paths": len(self.kept.paths) if self.kept else 0}
        if self.status is None:
            return {"id": self.id, "effects": calls, "undo": undo}
        end, question = self.status.end, self.status.question
        return {
            **run_row(self.status, self.left),
            "command": self.status.run.command,
            "question": question and {"number": question["number"], "message": question["message"]},
            "end": end and end.as_json(),
            "effects": calls,
            "undo": undo,
        }

    def state_lines(self) -> list[str]:
        """Return the run's state and question."""
        if self.status is None:
            place = next((entry.directory for entry in self.effects if entry.directory), "")
            return [f"Run {self.id}, in the foreground" + (f", in {quote_text(place, MAX_PLACE)}" if place else "")]
        run, starts = self.status.run, self.status.starts
        began = f", started {pluralize(starts, 'time')}" if starts else ""
        origin = f", {run.origin}" if run.origin else ""
        lines = [f"Run {self.id}: {self.state}{began}, asked for at {_time(run.created)}{origin}"]
        lines += [f"note: {LEFT}"] if self.left else []
        if question := self.status.question:
            lines += [str(question["message"]), f"Answer it with: onetool answer {self.id}"]
        return lines

    def reply_lines(self) -> list[str]:
        """Return the program's own words, marked line by line so that they are not taken for OneTool's."""
        end = self.status.end if self.status else None
        if end is None:
            return []
        said = "\n".join([*end.texts, *([f"error: {end.error}"] if end.error else [])])
        return ["\n  | ".join(["Its reply:", *said.splitlines()])] if said else []

    def effect_lines(self) -> list[str]:
        """Return a line for each call, below each other."""
        if not self.effects:
            return ["It called nothing that may change something."]
        return columns([_cells(entry) for entry in self.effects])

    def undo_lines(self) -> list[str]:
        """Return how to take back what it changed, if anything is known of that."""
        return [f"To restore the files and notes it changed: onetool undo {self.id} --dry-run"] if self.kept else []

    def news(self) -> list[str]:
        """Return the parts of a followed run that may have changed."""
        calls = ("  ".join(filter(None, _cells(entry))) for entry in self.effects)
        return [*self.state_lines(), *calls, *self.reply_lines()]


def run_row(status: RunStatus, left: bool) -> dict[str, Any]:
    """Return a run in the background as a line of a list."""
    run = status.run
    created = datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds")
    row = {"id": run.id, "name": run.name, "directory": run.directory, "state": status.state, "starts": status.starts}
    return row | {"created": created, "cancelled": status.cancelled, "left_behind": left}


def list_lines(statuses: Sequence[RunStatus]) -> list[str]:
    """Return runs in the background as a table."""
    cells = [[one.run.id, one.state, _time(one.run.created), one.run.origin] for one in statuses]
    return columns([["id", "state", "created", "where, name"], *cells]) if cells else []


def _cells(entry: LedgerEntry) -> list[str]:
    return [entry.state, entry.tool, f"line {entry.line}" if entry.line else "", _time(entry.at), entry.key]


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


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
            return found, set(await ledger.list_left_behind()), await ledger.unknown(_principal())

    statuses, left, unknown = _finish(read())
    rows = [run_row(status, status.run.id in left) for status in statuses]
    echo_either(as_json, {"runs": rows, "unknown": [entry.as_row() for entry in unknown]}, list_lines(statuses))
    if as_json:
        return
    if not rows:
        echo("No runs in the background. A program starts one with ot.background(command=...).", err=True)
    for run in dict.fromkeys(entry.run for entry in unknown):
        calls = pluralize(sum(entry.run == run for entry in unknown), "call")
        echo(f"The effect of {calls} of run {run} is unknown: onetool runs show {run}", err=True)


def show(id: RunArgument, as_json: AsJson = False) -> None:
    """Show what a run did, what it did not do, and what nobody knows; of one in the background also its state."""
    known = _require_known(_finish(_read(id)), id)
    echo_either(
        as_json,
        known.as_json(),
        [*known.state_lines(), *known.effect_lines(), *known.undo_lines(), *known.reply_lines()],
    )


def follow(id: RunArgument, as_json: AsJson = False) -> None:
    """Show what a run does until it has ended; the exit code is 0 when it was brought to its end."""
    known = _finish(_follow(id, as_json))
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
            return await ledger.cancel(_principal(), id), id in await ledger.list_left_behind()

    return _finish(stop())


def list_calls(id: str) -> list[dict[str, Any]]:
    """Return the calls of a run that may have changed something, as plain data."""
    known = _finish(_read(id))
    return [entry.as_row() for entry in known.effects] if known else []


def open_runs() -> list[RunStatus]:
    """Return the latest runs in the background that have not ended, and that somebody carries out."""

    async def read() -> list[RunStatus]:
        async with _ledger() as ledger:
            found = await ledger.runs(_principal(), MOST_LISTED) if ledger else []
            left = set(await ledger.list_left_behind()) if ledger else ()
            return [status for status in found if status.end is None and status.run.id not in left]

    return _finish(read())


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


def _finish[T](work: Coroutine[Any, Any, T]) -> T:
    from ot.cli.terminal.event_loop import run_async

    return run_async(work)


def _principal() -> str:
    from ot.config.principal import os_user

    return os_user()


async def _read(id: str) -> KnownRun | None:
    async with _ledger() as ledger:
        return await _look_up(ledger, id) if ledger else None


async def _look_up(ledger: SqliteLedger, id: str) -> KnownRun | None:
    status, effects = await ledger.status(_principal(), id), await ledger.of_run(_principal(), id)
    if status is None and not effects:
        return None
    left = status is not None and id in await ledger.list_left_behind()
    return KnownRun(id, status, effects, left, find_kept_run(id))


def find_kept_run(id: str) -> KeptRun | None:
    """Return what is kept for an undo of a run."""
    return _images().find_run(_principal(), id)


def list_kept_runs() -> list[KeptRun]:
    """Return what is kept for an undo of the latest runs."""
    return _images().list_runs(_principal(), MOST_LISTED)


def _images() -> ImageStore:
    from ot.config.paths import Paths
    from ot.files.run_images import FOLDER, ImageBounds, ImageStore

    place = Paths.find().global_dir / FOLDER
    return ImageStore(lambda principal: place, ImageBounds())


def _require_known(known: KnownRun | None, id: str) -> KnownRun:
    if known is None:
        why = "no run of yours has this id, or it called nothing that may change something"
        fail(f"nothing is known of '{id}': {why}. See 'onetool runs list'", NOT_FOUND)
    return known


async def _follow(id: str, as_json: bool) -> KnownRun:
    """Print what is new of a run, until it has ended or nobody carries it out; return how it is then."""
    shown: set[str] = set()
    async with _ledger() as ledger:
        while True:
            known = _require_known(await _look_up(ledger, id) if ledger else None, id)
            for line in [json.dumps(known.as_json())] if as_json else known.news():
                if line not in shown:
                    shown.add(line)
                    echo(line)
            if known.is_over:
                return known
            await asyncio.sleep(LOOK_SECONDS)
