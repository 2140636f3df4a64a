"""Programs that are recorded in one directory and replayed in another, where nothing of the first one is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ot.runtime.cassettes.cassette import read_cassette
from ot.runtime.cassettes.recording import Recording
from ot.runtime.cassettes.replay import Replay
from ot.runtime.reply import Reply
from run_app import BRAVE, Calls, running_app

ODD = '''
    """A pack of odd answers."""

    import asyncio
    import datetime


    def values() -> list:
        """Return what JSON has no type for."""
        return [(1, 2), {3}, b"\\x00\\xff", datetime.date(2026, 1, 2), float("inf"), 1 << 80, {1: "one"}, "no", "1e3"]


    async def later(seconds: float, what: str) -> str:
        """Return *what* after a while."""
        await asyncio.sleep(seconds)
        return what


    def shout(text: str) -> str:
        """Print and return *text*."""
        print(text.upper())
        return text


    def fail(kind: str) -> None:
        """Raise an error."""
        raise {"value": ValueError, "own": type("OwnError", (Exception,), {})}[kind]("it is wrong")
'''
PACKS = {"brave": BRAVE, "odd": ODD}
CONFIG: Mapping[str, Any] = {"policy": {"allow": ["*"]}, "projects": {"site": "/srv/site"}}


def make_directory(directory: Path) -> None:
    """Make *directory*, if it is not there."""
    directory.mkdir(exist_ok=True)


def is_there(file: Path) -> bool:
    """Return whether *file* is there."""
    return file.is_file()


async def record(
    directory: Path, command: str, cassette: Path, config: Mapping[str, Any] = CONFIG, why: str = ""
) -> Reply:
    """Return the reply to *command*, recorded in *cassette*, beside some files; or not recorded, with *why* told."""
    make_directory(directory)
    async with running_app(directory, PACKS, config) as app:
        (app.paths.cwd / "a.txt").write_text("first\nsecond\n")
        (app.paths.cwd / "b.txt").write_text("other\n")
        recording = Recording(app.picture.loaded.secrets.redact, cassette)
        reply = await app.run(command, tape=recording)
        assert why in "".join(recording.finish())
        assert is_there(cassette) == (not why)
        return reply


async def replay(
    directory: Path, command: str, cassette: Path, config: Mapping[str, Any] | None = None
) -> tuple[Reply, Replay]:
    """Return the reply where there are no files and no packs of users, and the replay; no tool may be called."""
    make_directory(directory)
    door = Calls()
    async with running_app(directory, None, config, observers=(door,)) as app:
        before = sorted(app.paths.cwd.rglob("*"))
        tape = Replay(read_cassette(cassette), app.picture.loaded.secrets.redact)
        reply = await app.run(command, tape=tape)
        assert door.tools == []
        assert sorted(app.paths.cwd.rglob("*")) == before
        return reply, tape
