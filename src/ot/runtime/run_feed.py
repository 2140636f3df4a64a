"""RunTrail: how far one run has come; RunFeed: what the runs of one process do, for those who watch.

While nobody does, open runs are listed, no more.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, cast

import orjson

from ot.brief_repr import Redact, brief_repr, brief_text
from ot.execution.caller import Caller
from ot.runtime.engines.engine import Outcome
from ot.runtime.pack_proxy import PackProxy, Tape
from ot.runtime.program import Program
from ot.runtime.reply import Reply
from ot.runtime.run_budget import RunBudget
from ot.runtime.run_events import (
    CallEnded,
    CallStarted,
    Printed,
    Progress,
    QuestionAnswered,
    QuestionAsked,
    RunEvent,
    TellEvent,
    telling,
)
from ot.stats.rows import RunRow

BATCH_SECONDS = 0.1
"""What happens within it goes to a watcher in one piece."""
MOST_BYTES = 4 << 20
"""What waits for a watcher that does not read; of more, only the number is kept."""
MAX_PROGRAM = 20_000
MAX_TEXT = 300
MAX_VALUE = 120
MAX_ARGUMENTS = 8
ENDED = "it has ended already"
IN_BACKGROUND = "a run in the background is cancelled by: onetool runs cancel {id}"


class RunWatcher:
    """The news that wait for one watcher: lines of JSON, of which a slow one misses some and is told how many."""

    def __init__(self, feed: RunFeed) -> None:
        """Wait for news of *feed*."""
        self._feed = feed
        self._lines: list[bytes] = []
        self._bytes = self._lost = 0
        self._news = asyncio.Event()

    def put(self, line: bytes) -> None:
        """Keep *line*, if there is room."""
        if self._bytes + len(line) > MOST_BYTES:
            self._lost += 1
        else:
            self._lines.append(line)
            self._bytes += len(line)
        self._news.set()

    def tell(self, event: str, **fields: Any) -> None:
        """Keep what concerns this watcher alone."""
        self.put(_line(event, fields))

    async def take(self) -> bytes:
        """Wait for new events and return them."""
        await self._news.wait()
        await asyncio.sleep(BATCH_SECONDS)
        self._news.clear()
        lines, lost, self._lines, self._bytes, self._lost = self._lines, self._lost, [], 0, 0
        if lost:
            # It may have missed the end of a run: these are the ones that go on.
            lines.append(_line("lost", {"count": lost, "open": list(self._feed.open)}))
        return b"".join(lines)


class RunFeed:
    """The runs that are open now, and those who watch them."""

    def __init__(self, redact: Redact) -> None:
        """Show nothing without *redact*."""
        self.open: dict[str, RunTrail] = {}
        """By id; a watcher that comes late sees them, too."""
        self.watchers: tuple[RunWatcher, ...] = ()
        self._redact = redact
        self._loop: asyncio.AbstractEventLoop | None = None
        self._home = 0

    def watch(self) -> RunWatcher:
        """Add a watcher, which receives the open runs first."""
        self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()
        watcher = RunWatcher(self)
        for trail in self.open.values():
            for line in self._story(trail):
                watcher.put(line)
            self._attach(trail)
            trail.packs.tell = trail.tell
        self.watchers = (*self.watchers, watcher)
        return watcher

    def leave(self, watcher: RunWatcher) -> None:
        """Tell *watcher* nothing more."""
        self.watchers = tuple(one for one in self.watchers if one is not watcher)

    def cancel(self, run: str, call: int | None = None) -> str:
        """Cancel a run, or one call of its program; return why it cannot be, if so."""
        trail = self.open.get(run)
        if trail is None:
            return ENDED
        if call is not None:
            return "" if trail.packs.cancel_call(call) else ENDED
        if trail.seconds is not None:
            return IN_BACKGROUND.format(id=run)
        trail.cancel()
        return ""

    # ---------------------------------------------------------------- what runs tell

    def begin(self, trail: RunTrail) -> None:
        """Tell of a run that begins, and of what it does from now on."""
        self._attach(trail)
        self._put(_line("run", self._run(trail)))

    def end(self, row: RunRow, reply: Reply | None) -> None:
        """Tell how a run has ended; one without a reply was cancelled by its client."""
        result = self._text(reply.texts[0].strip()) if reply and reply.texts else ""
        fields = {"run": row.run, "seconds": row.duration_ms / 1000, "error": row.error_type, "calls": row.calls}
        self._put(_line("ended", {**fields, "chars": row.chars_out, "result": result}))

    def _attach(self, trail: RunTrail) -> None:
        if trail.is_watched:
            return
        trail.is_watched = True
        trail.tell = self._tell_both(trail.tell)

    def _tell_both(self, tell: TellEvent | None) -> TellEvent:
        def tell_both(event: RunEvent) -> None:
            if tell:
                tell(event)
            if not self.watchers or self._loop is None:
                return
            # An engine may take prints on a thread of its own.
            if threading.get_ident() == self._home:
                self._take(event)
            else:
                self._loop.call_soon_threadsafe(self._take, event)

        return tell_both

    def _take(self, event: RunEvent) -> None:
        name, fields = self._describe(event)
        self._put(_line(name, {"run": event.run, **fields}))

    def _put(self, line: bytes) -> None:
        for watcher in self.watchers:
            watcher.put(line)

    # ---------------------------------------------------------------- in a few words, without secrets

    def _describe(self, event: RunEvent) -> tuple[str, dict[str, Any]]:
        budget = self._budget(self.open.get(event.run))
        match event:
            case CallStarted(call=call, tool=tool, args=args, kwargs=kwargs, line=line):
                return "call", self._call(call, tool, args, kwargs, line) | budget
            case CallEnded(call=call, tool=tool, seconds=seconds, error=error, chars=chars, value=value):
                result = "" if error else brief_repr(value, MAX_VALUE, self._redact)
                fields = {"call": call, "tool": tool, "seconds": seconds, "error": error, "chars": chars}
                return "returned", {**fields, "result": result}
            case Printed(text=text, tool=tool):
                return "printed", {"tool": tool, "text": self._text(text)}
            case Progress(done=done, total=total, message=message, tool=tool):
                fields = {"done": brief_repr(done, MAX_VALUE), "total": brief_repr(total, MAX_VALUE)}
                return "progress", {"tool": tool, "message": self._text(message), **fields}
            case QuestionAsked(question=question):
                return "asks", {"tool": question.tool, "text": self._text(question.message), **budget}
            case QuestionAnswered(question=question, answer=answer):
                return "answered", {"tool": question.tool, "answer": answer.action, **budget}

    def _story(self, trail: RunTrail) -> Iterator[bytes]:
        """Yield what a watcher who comes late has missed of a run."""
        yield _line("run", self._run(trail))
        now, moment = time.time(), time.monotonic()
        for number, call in trail.packs.under_way.items():
            shown = self._call(number, call.tool, call.args, call.kwargs, call.line)
            yield _line("call", {"run": trail.run_id, **shown, "at": now - (moment - call.started)})

    def _run(self, trail: RunTrail) -> dict[str, Any]:
        program = trail.program.source if trail.program else ".".join(trail.called or ())
        return {
            "run": trail.run_id,
            "client": trail.caller.client,
            "directory": trail.directory,
            "background": trail.seconds is not None,
            "session": trail.session,
            "since": time.time() - (time.monotonic() - trail.started),
            "program": brief_text(program, MAX_PROGRAM, self._redact),
            "depth": trail.budget.depth if trail.budget else 1,
            **self._budget(trail),
        }

    def _budget(self, trail: RunTrail | None) -> dict[str, Any]:
        """Return the used and the remaining budget of the run."""
        if trail is None or trail.budget is None:
            return {}
        used, most = trail.budget.calls_used
        return {"calls": used, "most_calls": most, "seconds_left": round(trail.budget.deadline.seconds_left, 3)}

    def _call(
        self, number: int, tool: str, args: Sequence[Any], kwargs: Mapping[str, Any], line: int | None
    ) -> dict[str, Any]:
        given = chain((("", value) for value in args), ((f"{name}=", value) for name, value in kwargs.items()))
        shown = [name + brief_repr(value, MAX_VALUE, self._redact) for name, value in islice(given, MAX_ARGUMENTS)]
        more = len(args) + len(kwargs) - len(shown)
        words = ", ".join([*shown, f"… {more} more"] if more else shown)
        return {"call": number, "tool": tool, "line": line, "arguments": words}

    def _text(self, text: str) -> str:
        return brief_text(text, MAX_TEXT, self._redact)


def _line(event: str, fields: Mapping[str, Any]) -> bytes:
    told = {"event": event, "at": time.time(), **fields}
    try:
        return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # an unpaired surrogate, which has no UTF-8
        return json.dumps(told).encode() + b"\n"


_current_task = cast("Callable[[], asyncio.Task[Any]]", asyncio.current_task)
"""A run is always in a task."""


@dataclass
class RunTrail:
    """How far one run has come, for its reply, and for who watches it."""

    caller: Caller
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    start: int = 0
    seconds: float | None = None
    """How long a run in the background may take."""
    tell: TellEvent | None = None
    session: str = ""
    format: str | None = None
    """The format of the reply, where the program asks for none."""
    started: float = field(default_factory=time.monotonic)
    program: Program | None = None
    packs: PackProxy = field(init=False)
    """What it reaches, from the moment at which it is open."""
    tape: Tape | None = None
    """What records the run, or answers its calls."""
    called: tuple[str, str] | None = None
    """The tool that is called without a program."""
    bare: bool = False
    """Whether nothing is to be written out: another program wants the value."""
    outcome: Outcome | None = None
    directory: str = ""
    budget: RunBudget | None = None
    task: asyncio.Task[Any] = field(default_factory=_current_task)
    is_watched: bool = False
    """Whether what it does is told to those who watch."""
    called_off: bool = False
    """Whether who watches has cancelled it."""

    @property
    def tolerated(self) -> list[str]:
        """The rows of the table of tolerances that were used."""
        found = (self.program, self.packs, self.outcome)
        return list(dict.fromkeys(row for part in found if part for row in part.tolerated))

    @property
    def asking(self) -> Caller:
        """The caller; observers hear of its questions."""
        ask = self.caller.ask
        return self.caller.with_ask(telling(ask, self.run_id, self.tell)) if ask and self.tell else self.caller

    @property
    def single_call(self) -> tuple[str, str] | None:
        return self.program.single_call if self.program else self.called

    def cancel(self) -> None:
        """End the run; its reply says who did."""
        self.called_off = True
        self.task.cancel()
