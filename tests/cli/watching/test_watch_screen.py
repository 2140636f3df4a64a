"""What the screen of onetool watch shows, and what keys choose, without a server."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ot.cli.watching.watch_screen import WatchScreen
from ot.cli.watching.watched_runs import KEPT, WatchedRuns, line_of, past_run

sys.path.insert(0, str(Path(__file__).parents[3]))
from docs import make_watch_picture as scene


def watched(*events: dict[str, Any]) -> WatchScreen:
    runs = WatchedRuns()
    for event in events or scene.EVENTS:
        runs.take(event)
    return WatchScreen(runs)


def shown(screen: WatchScreen, lines: int = 24) -> list[str]:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as drawn:
        console.print(screen.draw(lines))
    found = drawn.get().splitlines()
    assert len(found) == lines
    return found


def test_the_picture_in_the_docs_is_what_the_screen_shows() -> None:
    assert scene.PICTURE.read_text(encoding="utf-8") == scene.picture()


def test_keys_choose_a_run_and_one_of_its_calls() -> None:
    screen = watched()
    first, second, *_ = screen.rows
    assert screen.run is first
    screen.move(1)
    assert (screen.run, screen.chosen_call and screen.chosen_call.tool) == (second, "file.search")
    for _ in range(9):
        screen.move(1)
    assert (screen.run, screen.chosen_call) == (screen.rows[-1], None)
    screen.move(-99)
    assert screen.run is first


def test_nothing_that_others_wrote_steers_the_terminal() -> None:
    events = [{**event, "client": "\x1b[2Jclaude"} if event["event"] == "run" else event for event in scene.EVENTS]
    assert not any("\x1b" in line for line in [*shown(watched(*events)), *map(line_of, events)])


def test_runs_whose_end_was_lost_and_runs_of_a_server_that_has_ended_do_not_stay_open() -> None:
    screen = watched()
    (kept, dropped) = screen.runs.open
    screen.runs.take({"event": "lost", "server": 1, "at": scene.NOW, "count": 3, "open": [kept]})
    assert (list(screen.runs.open), screen.runs.lost, screen.runs.ended[0].id) == ([kept], 3, dropped)
    assert "3 events lost" in shown(screen)[0]
    screen.runs.take({"event": "gone", "server": 1, "at": scene.NOW})
    assert (list(screen.runs.open), screen.runs.servers) == ([], {})


def test_only_the_latest_calls_of_a_run_and_the_last_hundred_runs_are_kept() -> None:
    screen = watched()
    run = next(iter(screen.runs.open.values()))
    for number in range(10, 10 + 2 * KEPT):
        screen.runs.take({**scene.EVENTS[6], "run": run.id, "call": number})
        screen.runs.take({**scene.EVENTS[7], "run": run.id, "call": number})
    assert len(run.calls) == KEPT
    for number in range(2 * KEPT):
        screen.runs.take({**scene.EVENTS[1], "run": f"run {number}"})
        screen.runs.take({**scene.EVENTS[2], "run": f"run {number}"})
    assert (len(screen.runs.ended), screen.runs.seen) == (KEPT, 2 * KEPT + 2)


def test_a_run_of_which_only_the_statistics_know_says_so() -> None:
    call = {"tool": "file.read", "duration_ms": 12.0, "error_type": "", "chars_returned": 1200}
    row = {"run": "1f0c2b7a", "client": "codex", "calls": 1, "error_type": "", "duration_ms": 30.0, "ts": scene.NOW}
    screen = watched()
    screen.past = [past_run({**row, "chars_out": 7, "tools": [call]})]
    text = "\n".join(shown(screen))
    assert ("Its program is not kept" in text, "file.read  12 ms  1,200 characters" in text) == (True, True)


def test_the_clock_of_a_run_stands_still_while_it_asks() -> None:
    screen = watched()
    run = next(iter(screen.runs.open.values()))
    asks = {"event": "asks", "server": 1, "run": run.id, "at": scene.NOW, "tool": "a.b", "text": "a.b: asks\nmore"}
    screen.runs.take({**asks, "calls": 3, "most_calls": 1000, "seconds_left": 50.0})
    assert (run.left, run.said) == (50.0, "asks: a.b: asks")
