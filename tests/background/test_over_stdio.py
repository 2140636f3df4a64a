"""A client begins a background run over stdio; what a killed server left is told by the next."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters

from faults.watched import Place

pytestmark = pytest.mark.anyio

LONG_SECONDS = 30.0
CONFIG = "logs: {level: WARNING}\nengines: {use: portable}\n"
COMMAND = str(Path(sys.executable).parent / "onetool")
START = 'echo $$ > "$1"; exec "$2" serve'
NOTES = '''
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Notes that are kept in a file."""

import time
from pathlib import Path


def note(*, text: str, seconds: float = 0) -> str:
    """Write a line, and answer after a while."""
    with Path({file!r}).open("a") as file:
        file.write(text + "\\n")
    time.sleep(seconds)
    return text.upper()
'''


@asynccontextmanager
async def served(place: Place) -> AsyncGenerator[Callable[[str], Any]]:
    """Yield what runs a program at a server of its own and returns its value."""
    args = ["-c", START, "sh", str(place.home / "pid"), COMMAND]
    parameters = StdioServerParameters(command="/bin/sh", args=args, env=place.environment(), cwd=str(place.cwd))
    async with Client(parameters, read_timeout_seconds=LONG_SECONDS) as client:

        async def run(command: str) -> Any:
            result: Any = await client.call_tool("run", {"command": command})
            assert not result.is_error, result.content
            return yaml.safe_load(result.content[0].text)

        yield run


def pid_of(place: Place) -> int:
    return int((place.home / "pid").read_text())


async def lines_of(file: Path, count: int) -> None:
    """Return when *file* has that many lines."""
    async with asyncio.timeout(LONG_SECONDS):
        while not file.exists() or len(file.read_text().splitlines()) < count:  # noqa: ASYNC110, ASYNC240 - written by another process
            await asyncio.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place.make(tmp_path, CONFIG)
    folder = made.home / ".onetool" / "tools" / "notes"
    folder.mkdir(parents=True)
    (folder / "notes_tools.py").write_text(NOTES.format(file=str(tmp_path / "notes.txt")))
    return made


async def test_a_client_begins_a_run_polls_and_reads_and_a_killed_server_is_reported_by_the_next(
    place: Place, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    async with served(place) as run:
        id = (await run("ot.background(command='return notes.note(text=\"a\")', name='first')"))["id"]
        state = await run(f"ot.run_state(id={id!r}, wait=20)")
        assert ("done", ["A"]) == (state["state"], state["texts"])
        cut = "notes.note(text='b')\nnotes.note(text='c', seconds=60)\nnotes.note(text='d')"
        id = (await run(f"ot.background(command={cut!r})"))["id"]
        await lines_of(notes, 3)
        os.kill(pid_of(place), signal.SIGKILL)
    async with served(place) as run:
        state = await run(f"ot.run_state(id={id!r})")
        assert "stopped" == state["state"]
        report = await run(f"ot.result(handle={state['handle']!r}, path='.')")
        assert ["B"] == [call["value"] for call in report["done"]]
        assert [("notes.note", 2)] == [(call["tool"], call["line"]) for call in report["unknown"]]
        assert [{"tool": "notes.note", "line": 3, "most": 1}] == report["not_started"]
        assert ["stopped", "done"] == [run["state"] for run in await run("ot.run_state()")]
    assert "a\nb\nc\n" == notes.read_text()
