"""HeldRun: a run whose client was answered, or gave up, while a question of it waits for a person at a terminal."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, cast

MOST = 32
WAITS = (
    "The run is not over. It waits for its user, whom this client cannot ask: {tool}. Only a person can answer, by "
    "typing this in a terminal of this machine: onetool answer {code}\nTell the user that. The run goes on with the "
    'answer; this tells what it came to: ot.run_state(id="{id}", wait=20)\nDo not run the program again.'
)
GOES_ON = (
    "The run is not over. What it asked is answered or given up; this tells what it comes to: "
    'ot.run_state(id="{id}", wait=20)\nDo not run the program again.'
)
CANCELLED: Mapping[str, Any] = {"content": [{"type": "text", "text": "The run was cancelled."}], "isError": True}
BEGUN_BEFORE = "note: this is what the run came to that was begun by an earlier call of the same program"
LEFT_OUT = "note: {count} blocks that are not text are left out of the result of a run that waited for its user"


class HeldRun:
    """What is known of it, until the model has its result."""

    def __init__(self, program: object) -> None:
        """Stand for a run of *program*."""
        self.id = secrets.token_hex(8)
        self.program = program
        """What tells whether a later call means the same program."""
        self.code = self.tool = self.message = ""
        """The question that waits now, if one does."""
        self.left = False
        """Whether the client no longer waits for the run."""
        self.cancel: Callable[[], Awaitable[None]] = self._end_cancelled
        """Ends the run."""
        self.over = asyncio.Event()
        self.texts: tuple[str, ...] = ()
        self.is_error = False

    async def _end_cancelled(self) -> None:
        self.end(CANCELLED)

    def end(self, result: Mapping[str, Any]) -> None:
        """Take the result that the client does not wait for any more, as MCP writes it."""
        found = cast("list[Mapping[str, Any]]", result.get("content") or [])
        texts = [str(block["text"]) for block in found if block.get("type") == "text"]
        hidden = len(found) - len(texts)
        self.texts = (*texts, *([LEFT_OUT.format(count=hidden)] if hidden else []))
        self.is_error = bool(result.get("isError"))
        self.over.set()

    def text(self) -> str:
        """Return the text for a model while the run is not over."""
        if not self.code:
            return GOES_ON.format(id=self.id)
        return WAITS.format(tool=f"{self.tool} asks first" if self.tool else "it asks", code=self.code, id=self.id)

    def state(self) -> dict[str, Any]:
        """Return its state, in the form of that of a run in the background."""
        row: dict[str, Any] = {"id": self.id, "name": "", "state": "running"}
        if self.over.is_set():
            return row | {"state": "failed" if self.is_error else "done", "texts": list(self.texts)}
        if self.code:
            row |= {"state": "asks", "question": self.message, "answer_with": f"onetool answer {self.code}"}
        return row


class HeldRuns:
    """Those of one client, by id."""

    def __init__(self) -> None:
        """Begin with none."""
        self._runs: dict[str, HeldRun] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, run: HeldRun) -> None:
        """Keep *run*, and forget the oldest that has ended where there are too many."""
        self._runs[run.id] = run
        if len(self._runs) > MOST:
            self._runs.pop(next((id for id, one in self._runs.items() if one.over.is_set()), run.id))

    def release(self, run: HeldRun) -> None:
        """Forget *run* where its client has waited for it."""
        if not run.left:
            self._runs.pop(run.id, None)

    def get(self, id: str) -> HeldRun | None:
        """Return the run of *id*, if it is one of these."""
        return self._runs.get(id)

    async def state(self, run: HeldRun, wait: float) -> dict[str, Any]:
        """Return the state of *run*, at its end or after *wait* seconds; a result counts as delivered."""
        if wait > 0 and not run.over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await run.over.wait()
        if run.over.is_set():
            self._runs.pop(run.id, None)
        return run.state()

    def say_begun(self, program: object) -> tuple[tuple[str, ...], bool] | None:
        """Return the text for a *program* that was started before, and whether it is an error."""
        run = next((run for run in self._runs.values() if run.left and run.program == program), None)
        if run is None:
            return None
        if not run.over.is_set():
            return (run.text(),), False
        self._runs.pop(run.id)
        return (*run.texts, BEGUN_BEFORE), run.is_error
