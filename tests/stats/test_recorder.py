"""The recorder: quick, bounded, and never in the way."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ToolUnavailable
from ot.execution.caller import Caller
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.stats import recorder as recorder_module
from ot.stats.query import read_figures
from ot.stats.recorder import Recorder, definition, flat_chars
from stats.demo_rows import NOW
from stats.desk import ask, call, count, place, run_row


def test_runs_and_calls_are_written_within_a_second(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = Recorder(place(file))
    one.run_finished(run_row(time.time()))
    one.finished(call(error="ValueError"))
    assert one.flush(5)
    assert ask(file, "SELECT tool, pack, success, error_type, chars_returned, source FROM calls") == [
        ("t.f", "t", 0, "ValueError", 10, "worker")
    ]
    assert count(file, "runs") == 1
    one.close()
    assert recorder_module.FLUSH_SECONDS <= 1


def test_nothing_is_touched_when_statistics_are_off(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "stats.db", enabled=False))
    one.run_finished(run_row())
    one.finished(call())
    one.note_client(Caller("me", client="client"), lambda: 1, 1)
    one.close()
    assert list(tmp_path.iterdir()) == []
    assert one.health() == {"status": "disabled"}


def test_a_reload_can_move_them(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "a.db"))
    one.finished(call())
    assert one.flush(5)
    one.move(place(tmp_path / "b.db"))
    one.finished(call())
    one.close()
    assert (count(tmp_path / "a.db"), count(tmp_path / "b.db")) == (1, 1)


def test_a_client_is_weighed_once_and_off_the_loop(tmp_path: Path) -> None:
    asked: list[str] = []

    def flat() -> int:
        asked.append(threading.current_thread().name)
        return 5000

    one = Recorder(place(tmp_path / "stats.db"))
    for _ in range(3):
        one.note_client(Caller("me", client="claude"), flat, 700)
    one.close()
    assert asked == ["ot-stats-flat"]
    assert ask(tmp_path / "stats.db", "SELECT client, flat_chars, our_chars FROM connections") == [
        ("claude", 5000, 700)
    ]


def test_tools_that_do_not_exist_share_one_name(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "stats.db"))
    for number in range(5):
        one.finished(call(f"made.up_{number}", error="UnknownTool", source=""))
    one.close()
    assert ask(tmp_path / "stats.db", "SELECT DISTINCT tool FROM calls") == [("(unknown)",)]


def test_a_place_that_cannot_be_written_fails_no_call_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    one = Recorder(place(blocked / "stats.db"))
    for _ in range(10_050):
        one.finished(call())
    assert not one.flush(2)
    health: dict[str, Any] = one.health()
    assert (health["status"], health["waiting"], health["lost"]) == ("degraded", 10_000, 50)
    assert "file" in health["error"]
    blocked.unlink()
    assert one.flush(10)
    one.finished(call())
    one.close()
    assert count(blocked / "stats.db") == 10_001
    assert read_figures(blocked / "stats.db", "all", NOW * 2).lost == 50
    assert one.health() == {"status": "ok", "lost": 50}


# ---------------------------------------------------------------- what a flat list of all tools would take

QUERY = Parameter("query", "keyword", "str", None, "What to look for.")
COUNT = Parameter("count", "keyword", "int", "5")
TOOL = Tool("brave", "search", (QUERY, COUNT), doc="Search the web.")


def broken() -> list[Tool]:
    raise ToolUnavailable("bad", "it cannot be read")


def test_a_definition_is_what_a_client_would_list() -> None:
    assert definition(TOOL) == {
        "name": "brave_search",
        "description": "Search the web.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "count": {"type": "integer"},
            },
            "required": ["query"],
        },
    }
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    assert definition(Tool("p", "t", input_schema=schema))["inputSchema"] == schema


def test_all_packs_count_but_bundled_ones_and_those_that_cannot_be_read() -> None:
    packs = [
        Pack("brave", "local", lambda: [TOOL, TOOL]),
        Pack("ot", "local", lambda: [TOOL], bundled=True),
        Pack("bad", "x", broken),
    ]
    assert flat_chars(ToolRegistry(packs)) == 2 * len(json.dumps(definition(TOOL)))


def test_packs_that_nobody_used_are_not_kept_in_memory() -> None:
    pack = Pack("brave", "local", lambda: [TOOL])
    flat_chars(ToolRegistry([pack]))
    assert "tools" not in vars(pack)
