"""Draws docs/pictures/watch.svg: what ``onetool watch`` shows of a run that goes on.

``python docs/make_watch_picture.py`` draws it; a test fails when the screen would show anything else.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console

from ot.cli.watching.watch_screen import WatchScreen
from ot.cli.watching.watched_runs import WatchedRuns

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs.make_picture import DARK, LOADED_FONT

PICTURE = Path(__file__).parent / "pictures" / "watch.svg"
COLUMNS, LINES = 92, 20
NOW = 1_800_000_000.0
PROGRAM = """\
issues = github.list_issues(repo="ada/shop", label="bug")
for issue in issues:
    log = github.get_log(run=issue["run"])
    if "Timeout" in log:
        github.comment(issue=issue["number"], text="It timed out.")
len(issues)
"""


def _event(name: str, run: str, ago: float, **fields: Any) -> dict[str, Any]:
    return {"event": name, "server": 1, "run": run, "at": NOW - ago, **fields}


def _run(id: str, client: str, ago: float, program: str) -> dict[str, Any]:
    place = {"directory": "/src/shop", "background": False, "since": NOW - ago}
    return _event("run", id, ago, client=client, program=program, **place, calls=0, most_calls=1000, seconds_left=120.0)


def _call(run: str, number: int, ago: float, tool: str, arguments: str, line: int) -> dict[str, Any]:
    used = {"calls": number, "most_calls": 1000, "seconds_left": 120.0 - 4.4 + ago}
    return _event("call", run, ago, call=number, tool=tool, arguments=arguments, line=line, **used)


def _returned(run: str, number: int, seconds: float, tool: str, result: str) -> dict[str, Any]:
    return _event("returned", run, 0.0, call=number, tool=tool, seconds=seconds, error="", result=result)


def _ended(run: str, seconds: float, calls: int, result: str) -> dict[str, Any]:
    return _event("ended", run, 0.0, seconds=seconds, error="", calls=calls, result=result)


EVENTS = [
    {"event": "server", "server": 1, "at": NOW, "build": "1.0", "pid": 4711},
    _run("97613c65e2f0", "codex", 60.0, "1 + 1"),
    _ended("97613c65e2f0", 0.004, 0, "2"),
    _run("2c325c9e11ab", "codex", 9.0, ""),
    _ended("2c325c9e11ab", 0.585, 3, "3 tests failed"),
    _run("fc20a77d47901b4f", "claude-code", 4.4, PROGRAM),
    _call("fc20a77d47901b4f", 1, 4.3, "github.list_issues", "repo='ada/shop', label='bug'", 1),
    _returned("fc20a77d47901b4f", 1, 1.2, "github.list_issues", "[{'number': 41, 'run': 7}, … 2 more]"),
    _call("fc20a77d47901b4f", 2, 3.1, "github.get_log", "run=7", 3),
    _returned("fc20a77d47901b4f", 2, 1.5, "github.get_log", "'Timeout after 30 s…' (41,200 characters)"),
    _call("fc20a77d47901b4f", 3, 1.6, "github.comment", "issue=41, text='It timed out.'", 5),
    _run("8c0e19d4a2b7", "opencode", 0.3, "file.search(pattern='TODO')"),
    _call("8c0e19d4a2b7", 1, 0.2, "file.search", "pattern='TODO'", 1),
]


def picture() -> str:
    """Return the picture."""
    runs = WatchedRuns()
    console = Console(record=True, width=COLUMNS, height=LINES, file=io.StringIO(), legacy_windows=False)
    with patch("time.time", lambda: NOW):
        for event in EVENTS:
            runs.take(event)
        console.print(WatchScreen(runs).draw(LINES))
    drawn = LOADED_FONT.sub("", console.export_svg(title="onetool watch", theme=DARK, unique_id="watch"))
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
