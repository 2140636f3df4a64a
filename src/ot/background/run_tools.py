"""RunTools: what programs ask of background runs: to begin one, to tell of it, to cancel it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Container
from datetime import UTC, datetime
from typing import Any

from ot.background.carrying_out import SERVER_ENDED, RunCarrier
from ot.background.held_runs import HeldRuns
from ot.background.questions import put_to_user
from ot.background.run_place import RunPlace
from ot.errors import OneToolError
from ot.execution.caller import Caller
from ot.ledger.background_run import ENDED, BackgroundRun, RunStatus
from ot.ledger.run_book import KeptLedger

type SubmitRun = Callable[[str], Awaitable[None]]
"""Has a run of the book carried out, by its id."""

MAX_NAME = 200
MOST_LISTED = 50
WAIT_SECONDS, LOOK_SECONDS = 20.0, 0.1
NOBODY = (
    "nothing here carries out runs in the background: this process ends with what it was started for. Run the program "
    "itself, or call ot.background through a server that goes on (onetool serve)"
)
UNKNOWN = (
    "no run '{id}' of yours is known: ot.run_state() lists those begun in this directory. One that waited for its user "
    "ends with its server or its client; a call that nobody allowed was not made"
)


class RunTools:
    """Answers for the runs of one workspace.

    A program in another directory must not learn what they returned, which it may not read there, nor end them.
    """

    def __init__(
        self,
        book: KeptLedger,
        place: RunPlace,
        submit: SubmitRun | None,
        left_behind: RunCarrier | None,
        directory: str,
        own: Container[str] = (),
        held: HeldRuns | None = None,
    ) -> None:
        """Keep runs in *book* and hand them to *submit*; None: nobody carries them out here.

        They belong to *directory*. *left_behind* reports on those whose server has ended; *own* are carried out in this
        process. *held* are the client's own runs that wait for a person at a terminal.
        """
        self._held = held
        self._book = self.book = book
        self._place = place
        self._submit = submit
        self._left_behind = left_behind
        self._directory = directory
        self._own = own

    async def begin(self, caller: Caller, command: str, name: str) -> dict[str, Any]:
        """Have *command* carried out, and return what is known of the run.

        Raises:
            ValueError: The command cannot be read, or nobody carries it out here.
            TooManyRuns: The caller has as many as it may have.
        """
        if self._submit is None:
            raise ValueError(NOBODY)
        try:
            await self._place.read_program(command)
        except OneToolError as error:
            raise ValueError(f"the command cannot be read, so no run was begun: {error}") from None
        run = BackgroundRun(
            secrets.token_hex(8), caller.principal, command, time.time(), _one_line(name), caller.client,
            sorted(caller.groups), caller.admin, self._directory,
        )  # fmt: skip
        await self._book.add(run, self._place.background.most_open)
        await self._submit(run.id)
        return {"id": run.id, "name": run.name, "state": "waiting"}

    async def state(self, caller: Caller, id: str, wait: float) -> Any:
        """Return the state of one run, waiting a while for its end, or of the latest runs.

        Raises:
            ValueError: The caller has no such run.
        """
        if self._held and (run := self._held.get(id)):
            return await self._held.state(run, min(wait, WAIT_SECONDS))
        await self._stop_left_behind(caller.principal)
        if not id:
            found = await self._book.runs(caller.principal, MOST_LISTED, self._directory)
            return [_describe_status(status) for status in found]
        status = await self._await_status(caller.principal, id, wait)
        if caller.ask and await put_to_user(self._book, status, caller.ask):
            status = await self._require_status(caller.principal, id)
        return _describe_status(status) | _details(status)

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return the state of a run of *principal*; if its server has ended, the run is stopped first."""
        status = await self._book.status(principal, id)
        if status is None or status.state in ENDED:
            return status
        await self._stop_left_behind(principal)
        return await self._book.status(principal, id)

    async def cancel(self, caller: Caller, id: str) -> dict[str, Any]:
        """Want a run to end.

        Raises:
            ValueError: The caller has no such run.
        """
        if self._held and (run := self._held.get(id)):
            await run.cancel()
            return run.state()
        await self._stop_left_behind(caller.principal)
        known = await self._require_status(caller.principal, id)
        return _describe_status(await self._book.cancel(caller.principal, id) or known)

    async def _require_status(self, principal: str, id: str) -> RunStatus:
        status = await self._book.status(principal, id)
        if status is None or status.run.directory != self._directory:
            raise ValueError(UNKNOWN.format(id=id))
        return status

    async def _await_status(self, principal: str, id: str, wait: float) -> RunStatus:
        """Return the run's status as soon as it has ended or asks, or when it was waited for."""
        until = time.monotonic() + min(wait, WAIT_SECONDS)
        while True:
            status = await self._require_status(principal, id)
            if status.state in ENDED or status.state == "asks" or time.monotonic() >= until:
                return status
            await asyncio.sleep(LOOK_SECONDS)

    async def _stop_left_behind(self, principal: str) -> None:
        """Stop the runs of this directory whose server has ended, and report on them."""
        for id in await self._book.list_left_behind() if self._left_behind else ():
            # After the machine has slept, a run under way here looks abandoned until its next beat.
            status = None if id in self._own else await self._book.status(principal, id)
            if status and self._left_behind and status.run.directory == self._directory:
                await self._left_behind.stop(id, SERVER_ENDED)


def _describe_status(status: RunStatus) -> dict[str, Any]:
    run = status.run
    created = datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds")
    row: dict[str, Any] = {"id": run.id, "name": run.name, "state": status.state, "created": created}
    if status.cancelled and status.state not in ENDED:
        row["cancelled"] = True
    return row


def _details(status: RunStatus) -> dict[str, Any]:
    """Return the details that a list leaves out: the run's question and its result."""
    details: dict[str, Any] = {"starts": status.starts}
    if status.question:
        details["question"] = status.question["message"]
        details["answer_with"] = f"onetool answer {status.run.id}"
    if end := status.end:
        details["texts"] = list(end.texts)
        details |= {name: said for name, said in (("error", end.error), ("handle", end.handle)) if said}
    return details


def _one_line(name: str) -> str:
    """Return *name* as a person can read it in a list: without line feeds, and without what would steer a terminal."""
    plain = "".join(mark if mark.isprintable() else " " for mark in name)
    return " ".join(plain.split())[:MAX_NAME]
