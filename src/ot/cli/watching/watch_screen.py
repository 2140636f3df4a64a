"""Draws what is watched: the questions, the runs, and the one that is chosen with its program and its calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Group
from rich.text import Text

from ot.cli.answer import AskedQuestion
from ot.cli.ps import at_home
from ot.cli.terminal import pluralize
from ot.cli.watching.watched_runs import SHORT, WatchedCall, WatchedRun, WatchedRuns, duration
from ot.visible_text import printable

LIVE_KEYS = "↑↓ run  ←→ call  a answer  c cancel call  x cancel run  b look back  q quit"
BACK_KEYS = "↑↓ run  b back to what runs now  q quit"
CALLS_SHOWN = 12
NOT_KEPT = "Its program is not kept: it ran before this watch began, or in another server."

type Part = str | tuple[str, str]


@dataclass
class WatchScreen:
    """What is shown, and what of it is chosen."""

    runs: WatchedRuns
    questions: Sequence[AskedQuestion] = ()
    elsewhere: Sequence[WatchedRun] = ()
    """Runs in the background that no shared server carries out."""
    past: list[WatchedRun] | None = None
    """The last hundred, where somebody looks back."""
    chosen: str = ""
    call: int = 0
    """Which of the open calls is chosen."""
    note: str = ""
    unheard: Sequence[str] = field(default_factory=list[str])

    @property
    def rows(self) -> list[WatchedRun]:
        """The runs that can be chosen."""
        if self.past is not None:
            return self.past
        return [*self.runs.open.values(), *self.elsewhere, *self.runs.ended]

    @property
    def run(self) -> WatchedRun | None:
        """The run that is chosen: by a key, or else the first."""
        rows = self.rows
        return next((run for run in rows if run.id == self.chosen), rows[0] if rows else None)

    @property
    def chosen_call(self) -> WatchedCall | None:
        """The call that would be cancelled."""
        calls = self.run.open_calls if self.run else []
        return calls[self.call % len(calls)] if calls else None

    def move(self, by: int) -> None:
        """Choose another run."""
        rows, run = self.rows, self.run
        if run:
            place = next(place for place, one in enumerate(rows) if one is run)
            self.chosen, self.call = rows[max(0, min(place + by, len(rows) - 1))].id, 0

    def draw(self, height: int) -> Group:
        """Return the whole screen, *height* lines of it."""
        run = self.run
        lines = [self._head(), *(_question(asked) for asked in self.questions[:5])]
        lines += [_line(("note: ", "yellow"), text) for text in self.unheard]
        room = max(height - len(lines) - 3, 4)
        listed = self._list(max(room // 3, 3), run)
        lines += [_line(), *listed]
        foot = [_line((self.note, "bold yellow")) if self.note else _line((self._keys(), "dim"))]
        if run:
            lines += [_line(), *self._details(run, height - len(lines) - 2)]
        lines = lines[: height - 1]
        return Group(*lines, *[_line()] * (height - 1 - len(lines)), *foot)

    def _keys(self) -> str:
        return LIVE_KEYS if self.past is None else BACK_KEYS

    def _head(self) -> Text:
        runs = self.runs
        if self.past is not None:
            return _line(("The last runs", "bold"), f"  {len(self.past)} of at most 100, the latest first")
        if not runs.servers:
            return _line(("No shared server is running", "bold"), "  this view fills as soon as a client starts one")
        states = runs.servers.values()
        names = ", ".join(f"OneTool {state['build']} (process {state['pid']})" for state in states)
        lost = f", {runs.lost:,} events lost" if runs.lost else ""
        return _line((names, "bold"), f"  {pluralize(len(runs.open), 'run')} open, {runs.seen:,} ended{lost}")

    def _list(self, room: int, chosen: WatchedRun | None) -> list[Text]:
        rows = self.rows
        place = next((place for place, run in enumerate(rows) if run is chosen), 0)
        first = max(0, min(place - room // 2, len(rows) - room))
        shown = [_row(run, run is chosen) for run in rows[first : first + room]]
        more = len(rows) - first - len(shown)
        return [*shown, *([_line((f"  … {more:,} more", "dim"))] if more else [])]

    def _details(self, run: WatchedRun, room: int) -> list[Text]:
        calls = _calls(run, self.chosen_call, min(CALLS_SHOWN, max(room // 2, 2)))
        said = [_line(("  said  ", "dim"), run.said)] if run.said and run.seconds is None else []
        return [*_about(run), *_program(run, room - len(calls) - len(said) - 2), *said, *calls]


def _question(asked: AskedQuestion) -> Text:
    where = f"  {asked.whose}, {at_home(asked.fields['directory'])}"
    return _line(
        ("? ", "bold yellow"), (asked.tool, "bold"), f" asks first  {asked.code}", where, ("  a answers", "dim")
    )


def _row(run: WatchedRun, is_chosen: bool) -> Text:
    mark = ("▸ ", "bold cyan") if is_chosen else "  "
    if run.seconds is None:
        state, took, latest = ("●", "green"), time.time() - run.since, run.open_calls[-1:]
        what = (
            f"{latest[0].tool}({latest[0].arguments})" if latest else run.said or run.program.strip().partition("\n")[0]
        )
    else:
        state, took = ("✗", "red") if run.error else ("✓", "green"), run.seconds
        what = run.error or run.result
    whose = f"{run.client or 'unknown':16.16}" + (" in the background" if run.background else "")
    place = f"  {at_home(run.directory)}" if run.directory else ""
    style = "" if run.seconds is None else "dim"
    calls = pluralize(run.count, "call")
    return _line(
        mark, state, f" {run.id[:SHORT]}  {whose}  {duration(took):>8}  {calls:>9}  ", (what, style), (place, "dim")
    )


def _about(run: WatchedRun) -> list[Text]:
    used = pluralize(run.count, "call") + (f" of {run.most_calls:,}" if run.most_calls else "")
    if run.seconds is None:
        left = f", {duration(run.left)} left" if run.until else ""
        return [_line(("Run ", "bold"), (run.id, "bold"), f"  {used}{left}")]
    began = time.strftime("%H:%M:%S", time.localtime(run.since))
    how = (run.error, "red") if run.error else ("done", "green")
    return [_line(("Run ", "bold"), (run.id, "bold"), f"  {used}, began {began}, {duration(run.seconds)}  ", how)]


def _program(run: WatchedRun, room: int) -> list[Text]:
    """Return the lines of the program around the one it has reached."""
    if not run.program:
        return [_line((f"  {NOT_KEPT}", "dim"))] if run.seconds is not None else []
    lines, at = run.program.strip("\n").splitlines(), run.line or 0
    room = max(room, 1)
    first = max(0, min(at - 1 - room // 2, len(lines) - room))
    shown: list[Text] = []
    for number, text in enumerate(lines[first : first + room], first + 1):
        is_at = number == at and run.seconds is None
        shown.append(_line(("→ " if is_at else "  ", "bold cyan"), (f"{number:>3} ", "dim"), (text, "bold" * is_at)))
    return shown


def _calls(run: WatchedRun, chosen: WatchedCall | None, most: int) -> list[Text]:
    shown: list[Text] = []
    for call in list(run.calls.values())[-most:]:
        line = (f"  line {call.line}", "dim") if call.line else ""
        told = f"{call.tool}({call.arguments})" if call.line or call.arguments else call.tool
        if call.seconds is None:
            mark: Part = ("  ▸ ", "bold cyan") if call is chosen else ("  ● ", "green")
            parts: list[Part] = [mark, (told, "bold"), f"  {duration(time.time() - call.since)}", line]
        else:
            mark, how = (("  ✗ ", "red"), call.error) if call.error else (("  ✓ ", "green"), call.result)
            parts = [mark, told, (f"  {duration(call.seconds)}", "dim"), f"  {how}", line]
        shown.append(_line(*parts))
    return shown


def _line(*parts: Part) -> Text:
    """Return one line, cut where the screen ends; nothing in it can steer the terminal."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        line.append(printable(text), style)
    return line
