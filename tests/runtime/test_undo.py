"""Undo: what a run changed is taken back, the whole way of a run and of the command."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from answers import NO, YES, User
from callers import asking
from cli.command import OneTool
from ot.config.principal import os_user
from ot.files.path_state import NOTHING
from ot.files.run_images import ImageBounds, ImageStore
from ot.runtime.reply import Reply
from ot.workspace import Workspace
from run_app import error_of, running_app, value_of

pytestmark = pytest.mark.anyio

ALLOW = {"policy": {"allow": ["file.*", "memory.*"]}}
KEPT = {"limits": {"file_bytes": 1 << 20}, "undo": {"file_bytes": 100, "run_bytes": 4000}, **ALLOW}
CHANGES = """
file.write(path="old.txt", content="new")
with open("log.txt", "a") as log:
    log.write("one\\n")
    log.flush()
    log.write("two\\n")
file.delete(path="tree", recursive=True)
file.move(source="moved.txt", target="far/moved.txt")
id = memory.write(text="remember")["id"]
memory.delete(ids=[id])
"done"
"""


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with running_app(tmp_path, config=KEPT) as app:
        yield app


def tree(directory: Path) -> dict[str, Any]:
    """Return all that is below *directory*, with modes."""
    return {
        str(path.relative_to(directory)): (path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if ".onetool" not in path.parts
    }


def fill(directory: Path) -> None:
    """Write what the program above changes."""
    (directory / "old.txt").write_text("old")
    (directory / "old.txt").chmod(0o640)
    (directory / "moved.txt").write_text("moved")
    (directory / "tree" / "deep").mkdir(parents=True)
    (directory / "tree" / "deep" / "leaf.txt").write_text("leaf")
    (directory / "tree").chmod(0o750)


async def undone(app: Workspace, run: str) -> dict[str, Any]:
    """Undo *run*, with its user's consent."""
    reply = await app.run(f"return ot.undo(run={run!r})", asking(User(YES)))
    assert not reply.is_error, reply.texts
    return reply.value | {"by": reply.run}


async def done(app: Workspace, program: str) -> Reply:
    """Run *program*, which must not fail."""
    reply = await app.run(program)
    value_of(reply)
    return reply


async def test_all_that_a_run_changed_is_as_it_was_and_the_undo_can_be_undone(app: Workspace) -> None:
    fill(place := app.paths.cwd)
    before = tree(place)
    run = (await done(app, CHANGES)).run
    after = tree(place)
    assert before != after
    found = await undone(app, run)
    assert found["left"] == found["others"] == []
    assert before == tree(place)
    again = await undone(app, found["by"])
    assert after == tree(place)
    assert again["left"] == []


async def test_notes_are_as_they_were_with_their_ids_and_times(app: Workspace) -> None:
    await done(app, "memory.write(text='one', tags=['a'])\nmemory.write(text='two')\n'x'")
    before = (await done(app, "return [memory.read(id=1), memory.read(id=2)]")).value
    change = "memory.update(id=1, text='more', append=True)\nmemory.delete(ids=[2])\nmemory.write(text='three')\n'x'"
    run = (await done(app, change)).run
    found = await undone(app, run)
    assert ["note 1", "note 2", "note 3"] == sorted(found["restored"])
    assert before == (await done(app, "return [memory.read(id=1), memory.read(id=2)]")).value
    assert [2, 1] == [one["id"] for one in (await done(app, "return memory.list()")).value]


async def test_a_note_that_somebody_else_changed_is_left_alone(app: Workspace) -> None:
    run = (await done(app, "return memory.write(text='one')")).run
    await done(app, "memory.update(id=1, text='theirs')\n'x'")
    found = await undone(app, run)
    assert ["note 1"] == [one["path"] for one in found["left"]]
    assert "theirs" in (await done(app, "return memory.read(id=1)")).text


async def test_what_has_changed_since_is_shown_and_left_alone(app: Workspace) -> None:
    place = app.paths.cwd
    (place / "a.txt").write_text("before\n")
    run = (
        await done(app, "file.write(path='a.txt', content='run\\n')\nfile.write(path='n/b.txt', content='')\n'x'")
    ).run
    (place / "a.txt").write_text("theirs\n")
    (place / "n" / "theirs.txt").write_text("")
    found = await undone(app, run)
    left = {Path(one["path"]).name: one for one in found["left"]}
    assert {"a.txt", "n"} == left.keys()
    assert "-theirs\n+before" in left["a.txt"]["difference"]
    assert "not empty" in left["n"]["why"]
    assert [str(place / "n" / "b.txt")] == found["restored"]
    assert (place / "a.txt").read_text() == "theirs\n"


async def test_what_was_too_large_to_be_kept_is_told_of(app: Workspace) -> None:
    place = app.paths.cwd
    (place / "large.txt").write_text("x" * 101)
    for number in range(40):
        (place / f"{number}.txt").write_text("y" * 99)
    run = (
        await done(app, "file.delete(path='large.txt')\nfor n in range(40):\n    file.delete(path=f'{n}.txt')\n'x'")
    ).run
    found = await undone(app, run)
    why = {Path(one["path"]).name: one["why"] for one in found["left"]}
    assert "undo.file_bytes" in why.pop("large.txt")
    assert why
    assert all("undo.run_bytes" in one for one in why.values())
    assert len(found["restored"]) + len(why) == 40


async def test_what_was_moved_and_could_not_be_kept_stays_where_it_is(app: Workspace) -> None:
    place = app.paths.cwd
    (place / "large.txt").write_text("x" * 101)
    run = (await done(app, "file.move(source='large.txt', target='there.txt')\n'x'")).run
    found = await undone(app, run)
    assert {"large.txt", "there.txt"} == {Path(one["path"]).name for one in found["left"]}
    assert (place / "there.txt").read_text() == "x" * 101


async def test_other_calls_are_told_of_that_nothing_takes_back(tmp_path: Path) -> None:
    packs = {"bank": 'pack = "bank"\n__all__ = ["pay"]\n\n\ndef pay() -> int:\n    """Pay."""\n    return 1\n'}
    async with running_app(tmp_path, packs, ALLOW) as app:
        run = (await done(app, "bank.pay()\nfile.write(path='a.txt', content='')\n'x'")).run
        assert (await undone(app, run))["others"] == ["bank.pay: done"]


async def test_it_asks_and_a_no_changes_nothing(app: Workspace) -> None:
    run = (await done(app, "file.write(path='a.txt', content='')\n'x'")).run
    reply = await app.run(f"ot.undo(run={run!r})", asking(User(NO)))
    assert "the user said no" in error_of(reply)
    assert "ot.undo" in error_of(await app.run(f"ot.undo(run={run!r})"))
    assert (app.paths.cwd / "a.txt").exists()


async def test_a_run_that_changes_nothing_keeps_nothing(app: Workspace) -> None:
    (app.paths.cwd / "a.txt").write_text("text")
    run = (await done(app, "return file.read(path='a.txt')")).run
    assert not (app.paths.global_dir / "undo").exists()
    reply = await app.run(f"ot.undo(run={run!r})", asking(User(YES)))
    assert "nothing is kept" in error_of(reply)


async def test_a_run_does_not_undo_itself_nor_another_one_that_is_under_way(app: Workspace) -> None:
    store = ImageStore(lambda principal: app.paths.global_dir / "undo", ImageBounds())
    images = store.images_of(os_user(), "1" * 16, str(app.paths.cwd))
    assert images
    with images.change_of("note 7", lambda most: (NOTHING, None), lambda state, data: NOTHING):
        reply = await app.run(f"ot.undo(run={'1' * 16!r})", asking(User(YES)))
    assert "is under way" in error_of(reply)
    images.close()
    assert (await undone(app, "1" * 16))["same"] == ["note 7"]


async def test_another_id_than_a_runs_is_refused(app: Workspace) -> None:
    reply = await app.run("ot.undo(run='../../x')", asking(User(YES)))
    assert "is not the id of a run" in error_of(reply)


async def test_what_is_kept_is_private(app: Workspace) -> None:
    await done(app, "file.write(path='a.txt', content='')\n'x'")
    (kept,) = (app.paths.global_dir / "undo").iterdir()
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)


# ---------------------------------------------------------------- the command


def run_of(onetool: OneTool, program: str) -> str:
    """Run *program* by the command, and return its id."""
    ended = onetool("run", "--json", program)
    assert ended.code == 0, ended
    return json.loads(ended.out)["meta"]["run"]


def test_the_command_shows_and_restores_and_says_how_to_take_that_back(onetool: OneTool) -> None:
    (onetool.cwd / "a.txt").write_text("before")
    run = run_of(onetool, "file.write(path='a.txt', content='after')")
    assert f"onetool undo {run} --dry-run" in onetool("runs", "show", run).out
    assert {"paths": 1} == json.loads(onetool("runs", "show", run, "--json").out)["undo"]
    shown = onetool("undo", run, "--dry-run")
    assert (shown.code, shown.out) == (0, f"would be restored: {onetool.cwd / 'a.txt'}\n")
    assert onetool("undo", run).code == 4
    assert (onetool.cwd / "a.txt").read_text() == "after"
    ended = json.loads(onetool("undo", run, "--yes", "--json").out)
    assert ended["restored"] == [str(onetool.cwd / "a.txt")]
    assert (onetool.cwd / "a.txt").read_text() == "before"
    assert onetool("undo", run).out == f"as it was already: {onetool.cwd / 'a.txt'}\n"
    assert onetool("undo", ended["undone_by"], "--yes").code == 0
    assert (onetool.cwd / "a.txt").read_text() == "after"


def test_without_an_id_the_command_lists_the_latest_runs_that_changed_something(onetool: OneTool) -> None:
    assert onetool("undo").out == "No run has changed files or notes that an undo could restore.\n"
    first = run_of(onetool, "file.write(path='a.txt', content='x')\nfile.write(path='b.txt', content='x')")
    run_of(onetool, "file.list()")
    second = run_of(onetool, "file.write(path='a.txt', content='after')")
    rows = [line.split() for line in onetool("undo").out.splitlines()]
    assert [row[0] for row in rows] == ["run", second, first]
    assert rows[2][3:] == ["2", "paths", str(onetool.cwd)]
    assert [one["paths"] for one in json.loads(onetool("undo", "--json").out)] == [
        [str(onetool.cwd / "a.txt")],
        [str(onetool.cwd / "a.txt"), str(onetool.cwd / "b.txt")],
    ]


def test_the_command_works_where_the_run_did(onetool: OneTool) -> None:
    run = run_of(onetool, "file.write(path='a.txt', content='after')")
    (elsewhere := onetool.home / "elsewhere").mkdir()
    here, home = onetool.cwd, onetool.home
    ended = OneTool(elsewhere, home, onetool.monkeypatch, onetool.capsys)("undo", run, "--yes")
    assert ended.code == 0, ended
    assert not (here / "a.txt").exists()


def test_what_is_left_alone_is_an_exit_code(onetool: OneTool) -> None:
    run = run_of(onetool, "file.write(path='a.txt', content='after')")
    (onetool.cwd / "a.txt").write_text("theirs")
    os.utime(onetool.cwd / "a.txt", ns=(0, 0))
    ended = onetool("undo", run, "--yes")
    assert (ended.code, "it is not as the run left it" in ended.out) == (1, True)
    assert onetool("undo", "0" * 16).code == 3
