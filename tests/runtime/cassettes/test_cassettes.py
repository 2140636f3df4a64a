"""A recorded run is replayed with the same result, on each engine, where none of its tools is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ot.runtime.cassettes.cassette import read_cassette
from runtime.cassettes.taped import record, replay

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("each_engine")]

PROGRAMS = {
    "a file is read": "file.read(path='a.txt')",
    "a file is written and read": "file.write(path='new.txt', content='x\\ny')\nfile.read(path='new.txt')",
    "one call gives another answer later": (
        "before = file.read(path='a.txt')\nfile.write(path='a.txt', content='now')\n[before, file.read(path='a.txt')]"
    ),
    "files are listed": "[row['name'] for row in file.list()]",
    "files are searched": "file.search(pattern='second')",
    "a file is edited": "file.edit(path='a.txt', old='first', new='1st')\nfile.read(path='a.txt')",
    "an error is caught": (
        "try:\n    file.read(path='none')\nexcept FileNotFoundError as error:\n    said = str(error)\nsaid"
    ),
    "an error ends the run": "file.read(path='a.txt')\nfile.read(path='none')",
    "an error of a pack's own": (
        "try:\n    odd.fail(kind='own')\nexcept Exception as error:\n    said = str(error)\nsaid"
    ),
    "a builtin error": "odd.fail(kind='value')",
    "calls in parallel": (
        "import asyncio\nfound = await asyncio.gather(*[file.read(path=p) for p in ('a.txt', 'b.txt', 'a.txt')])\nfound"
    ),
    "tasks of several calls": (
        "import asyncio\n"
        "async def work(name, wait):\n"
        "    first = await odd.later(seconds=wait, what=name)\n"
        "    second = await odd.later(seconds=0, what=first + '2')\n"
        "    third = await odd.later(seconds=wait, what=second + '3')\n"
        "    return third\n"
        "found = await asyncio.gather(work('a', 0.05), work('b', 0), work('c', 0.02))\n"
        "[found, file.read(path='a.txt')]"
    ),
    "awaited one by one": "x = await odd.later(seconds=0, what='a')\ny = await odd.later(seconds=0, what='b')\nx + y",
    "the clock": (
        "import time, datetime\nstart = time.time()\nodd.later(seconds=0.02, what='x')\nend = time.time()\n"
        "print(start, end, datetime.datetime.now(), datetime.date.today())\n[end - start > 0.01, time.monotonic()]"
    ),
    "the clock of the program itself": (
        "import time\nstart = time.perf_counter()\nx = sum(range(1000))\n[x, time.perf_counter() - start]"
    ),
    "a sleep": "import time\nstart = time.time()\ntime.sleep(0.05)\n[0.05 <= time.time() - start < 0.06, start]",
    "chance": "import random\n[random.random(), random.choice('abcdef'), random.sample(range(100), 5)]",
    "notes": "kept = memory.write(text='a note', tags=['x'])\nmemory.search(query='note')",
    "help": "ot.help(query='file.read')",
    "the search for tools": "ot.tools()",
    "a project's path": "str(proj.site) + proj.path(name='site')",
    "what is not there": "[hasattr(file, 'read'), hasattr(odd, 'nothing'), hasattr(odd, 'values')]",
    "python's own files": (
        "with open('a.txt') as source:\n    text = source.read()\n"
        "with open('c.txt', 'w') as target:\n    target.write(text * 2)\nopen('c.txt').read()"
    ),
    "values that JSON has no type for": "odd.values()",
    "what a tool prints": "print('mine')\nodd.shout(text='hello')",
    "a shortened parameter": "brave.web_search(q='x', count=3)",
    "arguments in a dict": "brave.search({'query': 'x'})",
    "an import of a pack": "from brave import search\nsearch(query='x')",
    "a format": "__format__ = 'yml'\n{'a': [1, 2], 'b': brave.search(query='x')}",
}


@pytest.mark.parametrize("command", PROGRAMS.values(), ids=PROGRAMS)
async def test_a_recorded_program_is_replayed_without_its_tools_and_files(command: str, tmp_path: Path) -> None:
    recorded = await record(tmp_path / "there", command, tmp_path / "run.cassette.yaml")
    replayed, tape = await replay(tmp_path / "here", command, tmp_path / "run.cassette.yaml")
    assert (replayed.texts, replayed.value, replayed.is_error) == (recorded.texts, recorded.value, recorded.is_error)
    assert tape.list_differences() == []


async def test_the_file_is_its_owner_s_alone_and_reads_as_yaml(tmp_path: Path) -> None:
    file = tmp_path / "run.cassette.yaml"
    await record(tmp_path / "there", "file.read(path='a.txt')", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "- call: file.read\n  kwargs:\n    path: a.txt\n" in file.read_text()
    assert "  returns: |\n    first\n    second\n" in file.read_text()
    assert [call.call for call in read_cassette(file).calls] == ["file.read"]


async def test_a_run_that_used_up_a_limit_is_not_recorded(tmp_path: Path) -> None:
    config, command = {"limits": {"calls": 2}}, "[ot.health() for i in range(3)]"
    why = "it did not come to its end: the run made more than 2 tool calls"
    assert (await record(tmp_path / "there", command, tmp_path / "x.yaml", config, why)).is_error


async def test_a_program_with_a_mistake_is_not_recorded(tmp_path: Path) -> None:
    reply = await record(tmp_path / "there", "file.reed(path='a')", tmp_path / "x.yaml", why="did not come to its end")
    assert reply.error == "WrongCalls"
