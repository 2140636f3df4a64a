"""WatchedRuns: what is known of runs from what servers tell of them, and each event as a line."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ot.cli.ps import at_home
from ot.visible_text import printable

KEPT = 100
"""Runs that have ended, and calls of one run, that stay in the view."""
LINE = "\n"
SHORT = 8
"""Characters of a run's id that are shown."""


@dataclass(slots=True)
class WatchedCall:
    """One call of a run; ``seconds`` is None while it goes on."""

    number: int
    tool: str
    arguments: str = ""
    line: int | None = None
    since: float = 0.0
    seconds: float | None = None
    error: str = ""
    result: str = ""


@dataclass(slots=True)
class WatchedRun:
    """One run; ``seconds`` is None while it goes on."""

    id: str
    server: int = 0
    client: str = ""
    directory: str = ""
    program: str = ""
    since: float = 0.0
    background: bool = False
    seconds: float | None = None
    error: str = ""
    result: str = ""
    said: str = ""
    """What it printed last, how far it has come, or what it asks."""
    calls: dict[int, WatchedCall] = field(default_factory=dict[int, WatchedCall])
    count: int = 0
    """How many calls it has made, of which the latest are known."""
    most_calls: int = 0
    until: float = 0.0
    """When its time is over, if nobody is asked meanwhile."""
    asked: float = 0.0
    """Since when its clock stands still, for a question waits."""

    @property
    def open_calls(self) -> list[WatchedCall]:
        """The calls that go on."""
        return [call for call in self.calls.values() if call.seconds is None]

    @property
    def line(self) -> int | None:
        """The line of the program that it has reached, as far as its calls show."""
        known = [call for call in self.open_calls or self.calls.values() if call.line]
        return known[-1].line if known else None

    @property
    def left(self) -> float:
        """The seconds that it still has."""
        return max(self.until - (self.asked or time.time()), 0.0)

    def take_budget(self, event: Mapping[str, Any]) -> None:
        """Take what it has used."""
        if "calls" in event:
            self.count, self.most_calls = event["calls"], event["most_calls"]
            self.until = event["at"] + event["seconds_left"]
            self.asked = event["at"] if event["event"] == "asks" else 0.0


@dataclass
class WatchedRuns:
    """The runs of all servers that are watched."""

    open: dict[str, WatchedRun] = field(default_factory=dict[str, WatchedRun])
    ended: deque[WatchedRun] = field(default_factory=lambda: deque[WatchedRun](maxlen=KEPT))
    """The last one first."""
    servers: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    seen: int = 0
    """Runs that have ended since the watch began."""
    lost: int = 0
    """Events that could not be delivered."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event of a server."""
        server = event["server"]
        match event["event"]:
            case "server":
                self.servers[server] = dict(event)
            case "gone":
                self.servers.pop(server, None)
                self._drop(server, (), "ServerEnded")
            case "lost":
                self.lost += event["count"]
                self._drop(server, event["open"], "NotSeen")
            case "run":
                self._begin(event)
            case _:
                if run := self.open.get(event.get("run", "")):
                    self._go_on(run, event)

    def _begin(self, event: Mapping[str, Any]) -> None:
        run = WatchedRun(event["run"], event["server"], event["client"], event["directory"], event["program"])
        run.since, run.background = event["since"], event["background"]
        run.take_budget(event)
        self.open[run.id] = run

    def _go_on(self, run: WatchedRun, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "call":
                run.take_budget(event)
                call = WatchedCall(event["call"], event["tool"], event["arguments"], event["line"], event["at"])
                run.calls[call.number] = call
                if len(run.calls) > KEPT:
                    done = next((one for one in run.calls.values() if one.seconds is not None), call)
                    del run.calls[done.number]
            case "returned":
                call = run.calls.setdefault(event["call"], WatchedCall(event["call"], event["tool"]))
                call.seconds, call.error, call.result = event["seconds"], event["error"], event["result"]
            case "ended":
                run.result, run.count = event["result"], event["calls"]
                self._end(run, event["seconds"], event["error"])
            case _:
                run.take_budget(event)
                run.said = words_of(event) or run.said

    def _drop(self, server: int, still_open: Any, why: str) -> None:
        for run in [run for run in self.open.values() if run.server == server and run.id not in still_open]:
            self._end(run, time.time() - run.since, why)

    def _end(self, run: WatchedRun, seconds: float, error: str) -> None:
        run.seconds, run.error = seconds, error
        del self.open[run.id]
        self.ended.appendleft(run)
        self.seen += 1


def past_run(row: Mapping[str, Any]) -> WatchedRun:
    """Return a run as the statistics have it, which keep no program, argument or value."""
    run = WatchedRun(row["run"], client=row["client"], count=row["calls"], error=row["error_type"])
    run.seconds = row["duration_ms"] / 1000
    run.since = row["ts"] - run.seconds
    run.result = f"{row['chars_out']:,} characters"
    for number, one in enumerate(row["tools"][-KEPT:]):
        call = WatchedCall(number, one["tool"], seconds=one["duration_ms"] / 1000, error=one["error_type"])
        call.result = f"{one['chars_returned']:,} characters"
        run.calls[number] = call
    return run


# ---------------------------------------------------------------- in words


def words_of(event: Mapping[str, Any]) -> str:
    """Describe the event in a few words, if there is anything to say; an event of a later version by its name."""
    match event["event"]:
        case "server":
            return f"OneTool {event['build']}, process {event['pid']}, tells what its runs do"
        case "gone":
            return "the server has ended, or tells no more"
        case "lost":
            return f"{event['count']:,} events were not delivered"
        case "run":
            what = "a run in the background" if event["background"] else "a run"
            return f"{what} of {event['client'] or 'unknown'} in {at_home(event['directory'])}: {event['program']}"
        case "call":
            line = f" (line {event['line']})" if event["line"] else ""
            return f"{event['tool']}({event['arguments']}){line}"
        case "returned":
            return f"{event['tool']}: {event['error'] or event['result']}, {duration(event['seconds'])}"
        case "printed":
            return (
                f"prints: {event['text'].strip()}" if event["text"].strip() else ""
            )  # an engine sends line ends alone
        case "progress":
            counted = "/".join(part for part in (event["done"], event["total"]) if part != "None")
            return " ".join(filter(None, (event["tool"], counted, event["message"])))
        case "asks":
            return f"asks: {event['text'].partition(LINE)[0]}"
        case "answered":
            return f"was answered: {event['answer']}"
        case "ended":
            return f"ended after {duration(event['seconds'])}: {event['error'] or event['result']}"
        case "question":
            return f"waits for: onetool answer {event['code']} ({event['tool']}, {event['whose']})"
        case "refused":
            return f"not cancelled: {event['why']}"
        case name:
            return str(name)


def line_of(event: Mapping[str, Any]) -> str:
    """Return an event as a line: when, which run, and what; nothing where nothing is to be said."""
    words = words_of(event)
    when = time.strftime("%H:%M:%S", time.localtime(event["at"]))
    run = (event.get("run") or "")[:SHORT]
    return printable(f"{when}  {run:{SHORT}}  {words}") if words else ""


def duration(seconds: float) -> str:
    """Return a time as a person reads it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
