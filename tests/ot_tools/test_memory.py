"""The bundled pack ``memory``."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from notes.test_notes_contract import found, written
from ot.execution.tool_context import ToolContext, use
from ot.files import shared_database
from ot.files.path_guard import PathGuard
from ot.registry.tool_loader import read_pack_file
from ot_tools import memory
from pace import PATIENCE

DAY = 86_400.0


def context(directory: Path, project: str = "shop", **settings: Any) -> ToolContext:
    cwd = directory / project
    cwd.mkdir(exist_ok=True)
    return ToolContext(PathGuard((cwd,)), cwd, settings, user_dir=directory / "user")


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> Iterator[ToolContext]:
    """The project ``shop`` of a user who has no notes."""
    with use(found := context(tmp_path)):
        yield found


def database(directory: Path) -> Path:
    return directory / "user" / "data" / "memory" / "notes.db"


# ---------------------------------------------------------------- the pack


def test_the_pack_of_notes_has_the_form_that_the_loader_reads() -> None:
    tools = read_pack_file(Path(memory.__file__), pack="memory", target="ot_tools.memory")
    assert [tool.name for tool in tools] == ["delete", "list", "read", "search", "tags", "update", "write"]
    assert [tool.name for tool in tools if tool.destructive] == ["delete"]
    assert [tool.name for tool in tools if tool.read_only] == ["list", "read", "search", "tags"]
    for tool in tools:
        assert {"keyword"} == {parameter.kind for parameter in tool.parameters}
        for heading in ("Args:", "Returns:", "Example:", *(f"    {p.name}: " for p in tool.parameters)):
            assert heading in tool.doc


def test_a_note_comes_back_whole(tmp_path: Path) -> None:
    text = "Line one\n\n  line two \t\0 é 部署 🎉"
    kept = memory.write(text=text, tags=["Api ", "api", "Größe"])
    assert kept == memory.read(id=kept["id"])
    assert (kept["text"], kept["tags"], kept["scope"], kept["chars"]) == (text, ["api", "grösse"], "project", len(text))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", kept["created"])
    assert database(tmp_path).stat().st_mode & 0o777 == 0o600
    assert database(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_looking_for_notes_where_there_are_none_makes_no_file(tmp_path: Path) -> None:
    assert memory.list() == memory.search(query="x") == memory.tags(scope="all") == []
    with pytest.raises(LookupError, match=r"no note 1: memory.list\(scope='all'\) lists those it has"):
        memory.read(id=1)
    assert not (tmp_path / "user").exists()


# ---------------------------------------------------------------- searching


def test_time_narrows_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    noon = 1_767_268_800.0  # the first day of 2026
    ids: list[int] = []
    for day in range(3):
        monkeypatch.setattr(time, "time", lambda day=day: noon + day * DAY)
        ids += written(f"day {day}")
    assert found("day", since="2026-01-02", until="2026-01-02") == [ids[1]]
    assert [note["id"] for note in memory.list(since="2026-01-02T12:00:00+00:00")] == [ids[2], ids[1]]
    assert [note["id"] for note in memory.list(until="2026-01-02T13:00:00+01:00")] == [ids[0]]
    monkeypatch.setattr(time, "time", lambda: noon + 9 * DAY)
    memory.update(id=ids[0], text="later", append=True)
    assert [note["id"] for note in memory.list()] == [ids[0], ids[2], ids[1]]
    assert memory.read(id=ids[0])["created"] == "2026-01-01T12:00:00+00:00"


def test_a_day_without_a_zone_is_a_day_in_utc_wherever_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC+9")
        time.tzset()
        patch.setattr(time, "time", lambda: 1_767_312_000.0)  # the second day of 2026 begins
        (note,) = written("now")
        assert [found("now", since=day) for day in ("2026-01-02", "2026-01-03")] == [[note], []]
        assert found("now", until="2026-01-01") == []
    time.tzset()


# ---------------------------------------------------------------- changing


def test_a_note_of_the_user_is_in_all_projects_and_one_of_a_project_is_not(tmp_path: Path) -> None:
    (own,) = written("a note of the shop")
    (everywhere,) = written("a note of the user", scope="user")
    with use(context(tmp_path, "blog")):
        assert found("note", scope="all") == found("note", scope="user") == [everywhere]
        assert found("note") == []
        assert memory.read(id=everywhere)["scope"] == "user"
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    with use(replace(context(tmp_path), cwd=tmp_path / "link")):
        assert found("note") == [own], "a project is its directory, by whichever path"


# ---------------------------------------------------------------- several processes

WRITER = """
import sys
from pathlib import Path
from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard
from ot_tools import memory
directory, name = Path(sys.argv[1]), sys.argv[2]
with use(ToolContext(PathGuard((directory / "shop",)), directory / "shop", user_dir=directory / "user")):
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(25):
        memory.write(text=f"{name} {number}", tags=[name])
        memory.update(id=1, text=f"{name} {number}", append=True)
"""


def test_two_processes_that_make_the_file_and_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    both = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("ann", "bob")
    ]
    for process in both:
        assert process.stdout and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert {(tag["tag"], tag["notes"]) for tag in memory.tags()} == {("ann", 25), ("bob", 25)}
    lines = memory.read(id=1)["text"].splitlines()[1:]
    assert sorted(lines) == sorted(f"{name} {number}" for name in ("ann", "bob") for number in range(25))


def test_a_file_that_another_process_holds_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written("one")
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(database(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match=r"another process has been writing the notes in .*notes\.db.*: try again"):
            written("two")
        assert found("one") == [1], "whoever reads waits for nobody"
    assert written("two") == [2]


@pytest.mark.parametrize("where", [0, 4096 * 2], ids=["at its head", "in its pages"])
def test_a_damaged_file_is_one_error_that_says_what_to_do(tmp_path: Path, where: int) -> None:
    written(*(f"note {number} " + "words " * 200 for number in range(20)))
    file = database(tmp_path)
    data = bytearray(file.read_bytes())
    data[where:] = b"\xff" * (len(data) - where)
    file.write_bytes(data)
    with pytest.raises(OSError, match=r"notes\.db are damaged \(.*\): restore the file from a backup, or move it away"):
        memory.search(query="note")
    file.unlink()
    assert written("anew") == [1]


def test_a_directory_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("a file")
    with pytest.raises(OSError, match="user"):
        written("x")


# ---------------------------------------------------------------- limits


def test_limits_say_what_to_do(tmp_path: Path) -> None:
    with use(context(tmp_path, max_chars=10, max_notes=2)):
        written("0123456789")
        with pytest.raises(ValueError, match=r"11 characters, more than 10 \(tools.memory.max_chars\)"):
            written("01234567890")
        with pytest.raises(ValueError, match=r"12 characters, more than 10"):
            memory.update(id=1, text="x", append=True)
        written("second", scope="user")
        with pytest.raises(ValueError, match=r"there are 2 notes already \(tools.memory.max_notes\): delete some"):
            written("third")
        memory.delete(ids=1)
        written("third")


def test_a_full_file_takes_no_more_and_can_shrink(tmp_path: Path) -> None:
    with use(context(tmp_path, max_bytes=1 << 20)):
        ids: list[int] = []
        for words in (3000, 30, 3, 1):  # until there is no room for a word either
            with pytest.raises(OSError, match=r"no room for more in .*: delete notes, or raise tools.memory.max_bytes"):
                for _ in range(100):
                    ids += written(" ".join(f"word{len(ids)}x{place}" for place in range(words)))
        assert len(ids) > 5 and len(memory.list(limit=100)) == len(ids)
        assert database(tmp_path).stat().st_size <= 1 << 20
        memory.delete(ids=ids[-1])  # which itself takes some room
        memory.delete(ids=ids[:5])
        written("there is room again")


def test_tags_may_also_be_none() -> None:
    nothing: Any = None
    assert memory.write(text="x", tags=nothing)["tags"] == []
    assert [note["id"] for note in memory.list(tags=nothing)] == found("x", tags=nothing) == [1]


def test_a_text_in_the_place_of_tags_is_refused_before_anything_is_kept() -> None:
    supplier: Any = "Nordholz"
    with pytest.raises(TypeError, match=r"tags must be a list, such as \['decision'\], got 'Nordholz'"):
        memory.write(text="supplier", tags=supplier)
    note = memory.write(text="supplier: Nordholz")
    with pytest.raises(TypeError, match="tags must be a list"):
        memory.update(id=note["id"], tags=supplier)
    assert [kept["tags"] for kept in memory.list()] == [[]]


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="tags must be a list, got int"):
        memory.list(tags=5)  # pyright: ignore[reportArgumentType] - as programs may
    with pytest.raises(TypeError, match="ids must be a list, got NoneType"):
        memory.delete(ids=None)  # pyright: ignore[reportArgumentType] - as programs may
    with pytest.raises(TypeError, match="text must be text, got dict"):
        memory.write(text={})  # pyright: ignore[reportArgumentType] - as programs may
    with pytest.raises(TypeError, match="id must be an int, got True"):
        memory.read(id=True)


def test_unknown_settings_of_notes_are_refused(tmp_path: Path) -> None:
    with use(context(tmp_path, max_note=1)), pytest.raises(ValidationError):
        written("x")
