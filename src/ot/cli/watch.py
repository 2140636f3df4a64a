"""onetool watch: what runs do, while they do it."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import OK
from ot.cli.terminal import columns, echo, echo_either, echo_json, open_console
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from ot.cli.watching.server_feeds import Event, ServerFeeds
    from ot.cli.watching.watch_screen import WatchScreen
    from ot.cli.watching.watched_runs import WatchedRun

LOOK_SECONDS = 1.0
"""How often new servers and questions are looked for."""
LEDGER_SECONDS = 5.0
"""How often the ledger is looked into for runs in the background that no shared server carries out."""
DRAW_SECONDS = 0.5
MOST = 100
ARROWS = {"\x1b[A": "k", "\x1b[B": "j", "\x1b[C": "l", "\x1b[D": "h"}
KEY = re.compile(r"\x1b\[[A-D]|.", re.DOTALL)


def watch(
    last: Annotated[bool, typer.Option("--last", help="Show the last hundred runs, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what runs do while they do it, answer what they ask, and cancel them; with --json, an event on each line."""
    try:
        if last:
            _list_past(as_json)
        elif as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _tell(as_json)
        else:
            _show()
    except BrokenPipeError:
        # Whoever read it has had enough; Python would complain once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Looking:
    """Waits for what servers tell and for keys, and looks for new servers and questions at intervals."""

    def __init__(self, feeds: ServerFeeds, *keys: int) -> None:
        self.feeds = feeds
        self.questions: Any = ()
        self._keys = keys
        self._look_at = 0.0

    def wait(self, seconds: float) -> tuple[list[Event], bool]:
        """Return the events of the next *seconds*, and whether a key was pressed."""
        ready, _, _ = select.select([*self._keys, *self.feeds.feeds.values()], [], [], seconds)
        events = [event for one in ready if not isinstance(one, int) for event in self.feeds.read(one)]
        if time.monotonic() >= self._look_at:
            events += self.feeds.look()
            self.questions, new = self.feeds.questions()
            events += new
            self._look_at = time.monotonic() + LOOK_SECONDS
        return events, any(isinstance(one, int) for one in ready)


# ---------------------------------------------------------------- lines


def _tell(as_json: bool) -> None:
    from ot.cli.watching.server_feeds import ServerFeeds
    from ot.cli.watching.watched_runs import line_of

    with closing(ServerFeeds()) as feeds:
        looking = _Looking(feeds)
        events, _ = looking.wait(0)
        if not feeds.feeds:
            why = "".join(f": {reason}" for reason, _ in feeds.unheard.values())
            echo(f"No shared server is running{why}; waiting for one.", err=True)
        while True:
            for event in events:
                if as_json:
                    echo_json(event)
                elif line := line_of(event):
                    echo(line)
            events, _ = looking.wait(LOOK_SECONDS)


def _list_past(as_json: bool) -> None:
    from ot.cli.watching.watched_runs import duration
    from ot.visible_text import printable

    rows = _latest_rows()
    cells = [
        (
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["ts"])), row["run"], printable(row["client"]),
            duration(row["duration_ms"] / 1000), f"{row['calls']} calls", row["error_type"] or "ok",
            ", ".join(dict.fromkeys(printable(call["tool"]) for call in row["tools"])),
        )
        for row in rows
    ]  # fmt: skip
    echo_either(as_json, {"runs": rows}, columns(cells) if cells else [])
    if not rows and not as_json:
        echo("No run is in the statistics of this directory's configuration.", err=True)


def _latest_rows() -> list[dict[str, Any]]:
    """Return the last hundred runs from the statistics of this directory's configuration, the latest first."""
    from ot.build import stats_place
    from ot.config.load import load_config
    from ot.config.paths import Paths
    from ot.stats.query import read_latest_runs

    paths = Paths.find()
    return read_latest_runs(stats_place(load_config(paths)).file, MOST)


# ---------------------------------------------------------------- the screen


def _show() -> None:
    from ot.cli.watching.server_feeds import ServerFeeds
    from ot.cli.watching.watch_screen import WatchScreen
    from ot.cli.watching.watched_runs import WatchedRuns

    console, screen = open_console(), WatchScreen(WatchedRuns())
    with closing(ServerFeeds()) as feeds:
        view = _View(console, _Looking(feeds, sys.stdin.fileno()), screen)
        while view.show():
            _answer_first()


class _View:
    """The screen, and what keys do."""

    def __init__(self, console: Console, looking: _Looking, screen: WatchScreen) -> None:
        self._console = console
        self._looking = looking
        self._screen = screen
        self._wants: tuple[WatchedRun, int | None] | None = None
        """What is cancelled once the person says yes."""
        self._ledger_at = 0.0

    def show(self) -> bool:
        """Show it until the person wants to answer a question, or, which returns False, to end."""
        with _single_keys(), self._console.screen() as shown:
            drawn_at, is_new = 0.0, True
            while True:
                events, pressed = self._looking.wait(DRAW_SECONDS)
                for event in events:
                    self._take(event)
                for key in _read_keys() if pressed else ():
                    if key in "aq" and (key == "q" or self._screen.questions):
                        return key == "a"
                    self._press(key)
                self._look_elsewhere()
                is_new = is_new or bool(events) or pressed or bool(self._screen.runs.open)
                if is_new and (pressed or time.monotonic() - drawn_at >= DRAW_SECONDS):
                    shown.update(self._screen.draw(self._console.height))
                    drawn_at, is_new = time.monotonic(), False

    def _take(self, event: Event) -> None:
        from ot.cli.watching.watched_runs import words_of

        self._screen.runs.take(event)
        if event["event"] == "refused":
            self._screen.note = words_of(event)
        if event["event"] == "ended" and self._screen.past is not None:
            self._screen.past = _past(self._screen.runs.ended)

    def _look_elsewhere(self) -> None:
        screen, looking = self._screen, self._looking
        screen.questions = looking.questions
        screen.unheard = [why for why, _ in looking.feeds.unheard.values()]
        if time.monotonic() >= self._ledger_at:
            self._ledger_at = time.monotonic() + LEDGER_SECONDS
            screen.elsewhere = [run for run in _background_runs() if run.id not in screen.runs.open]

    def _press(self, key: str) -> None:
        screen = self._screen
        wants, self._wants = self._wants, None
        screen.note = ""
        if wants and key == "y":
            self._cancel(*wants)
        elif key in "jk":
            screen.move(1 if key == "j" else -1)
        elif key in "hl":
            screen.call += 1 if key == "l" else -1
        elif key == "b":
            screen.past = _past(screen.runs.ended) if screen.past is None else None
            screen.chosen = ""
        elif key in "cx" and screen.past is None:
            self._want(whole=key == "x")

    def _want(self, *, whole: bool) -> None:
        screen, run, call = self._screen, self._screen.run, self._screen.chosen_call
        if run is None or run.seconds is not None or (call is None and not whole):
            screen.note = "Nothing is chosen that could be cancelled."
            return
        what = f"run {run.id}" if whole or call is None else f"the call of {call.tool}"
        self._wants = run, None if whole or call is None else call.number
        screen.note = f"Cancel {what}? What it has done stays done. y cancels it, any other key does not."

    def _cancel(self, run: WatchedRun, call: int | None) -> None:
        if run.background and call is None:
            from ot.cli.runs import cancel_run

            cancel_run(run.id)
            self._screen.note = f"Run {run.id} is asked to stop."
        elif not self._looking.feeds.cancel(run.server, run.id, call):
            self._screen.note = "Its server has ended."


def _answer_first() -> None:
    """Have the person answer the question that has waited longest, as ``onetool answer`` does."""
    from ot.cli.answer import answer_here, find_questions

    with ExitStack() as connections:
        if not (waiting := find_questions(connections)):
            return
        try:
            answer_here(waiting[0])
        except typer.Exit as ended:
            if ended.exit_code != OK:
                echo("Press Enter to go on watching.", nl=False)
                sys.stdin.readline()


def _background_runs() -> list[WatchedRun]:
    from ot.cli.runs import open_runs
    from ot.cli.watching.watched_runs import WatchedRun

    return [
        WatchedRun(
            status.run.id, 0, status.run.client, status.run.directory, status.run.command, status.run.created,
            background=True, said=status.state,
        )
        for status in open_runs()
    ]  # fmt: skip


def _past(seen: Iterable[WatchedRun]) -> list[WatchedRun]:
    """Return the last hundred runs: those that were watched, whose programs are known, and older ones."""
    from ot.cli.watching.watched_runs import past_run

    known = {run.id: run for run in seen}
    older = (past_run(row) for row in _latest_rows() if row["run"] not in known)
    return sorted([*known.values(), *older], key=lambda run: run.since, reverse=True)[:MOST]


@contextmanager
def _single_keys() -> Generator[None]:
    """Take keys one by one, and show none of them."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _read_keys() -> list[str]:
    """Return the keys that were pressed; an end of input quits."""
    typed = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
    keys: list[str] = KEY.findall(typed)
    return [ARROWS.get(key, key) for key in keys] or ["q"]
