"""Large values and many calls: the server stays small, and what was spooled goes with its server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import pytest

from faults.watched import peak_growth_mb, start_wire
from mcp_wire import WireServer
from ot.errors import ToolBusy, WorkerDied
from ot.processes.guarded_process import GuardedProcess
from ot.workers.pool import DEATHS
from ot.workers.spool_directories import SpoolDirectories
from processes.process_marks import children_of, zombies_of
from workers.corpus_faults import Fault, fault
from workers.door import Door, extension, open_files
from workers.process_watch import below_this
from workers.watched_workers import LONG_CONFIG, WORKER_SERVER, WorkerPlace

pytestmark = pytest.mark.anyio

LINES, ROWS = 1_000_000, 100_000
PACK = '''
"""A pack whose values are large."""


def text(*, lines: int) -> str:
    """Return lines of a hundred bytes."""
    words = ("needle" if number == lines // 2 else "hay" for number in range(lines))
    return "".join(f"{number:08} {word:>8}{'.' * 82}\\n" for number, word in enumerate(words))


def rows(*, count: int) -> list:
    """Return dicts of about a kilobyte."""
    return [{"id": number, "name": f"row {number}", "pad": "." * 1000} for number in range(count)]


def api(*, count: int) -> dict:
    """Return what an API returns: one key holds nearly all."""
    return {"count": count, "results": rows(count=count), "next": None}
'''


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory, uv_cache: str) -> Generator[WireServer]:
    place = WorkerPlace.furnish(tmp_path_factory.mktemp("large"), LONG_CONFIG, {"large": PACK})
    with start_wire(place, WORKER_SERVER) as started:
        # What only first calls cost: the engine, the worker, the libraries of searches.
        handle = handle_of(started, "large.rows(count=10_000)")
        for query in ("offset=2", "search='a.b'", "search='a', fuzzy=True", "path='[1]'", "outline=True"):
            started.run(f"ot.result(handle='{handle}', {query})")
        yield started


def handle_of(wire: WireServer, call: str) -> str:
    reply = wire.run(call, timeout=60)
    assert reply.is_error, reply.text
    found = re.search(r"ot\.result\(handle='([\w-]+)'\)", reply.text)
    assert found, reply.text
    return found[1]


def ask(wire: WireServer, handle: str, query: str) -> Any:
    reply = wire.run(f"__format__ = 'json'\n[ot.result(handle='{handle}', {query})]", timeout=60)
    assert not reply.is_error, reply.text
    return json.loads(reply.text)[0]


def test_a_text_of_a_hundred_megabytes_is_paged_and_searched(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.text(lines={LINES})")
        page = ask(wire, handle, "limit=2")
        assert page["total_lines"] == LINES
        assert page["lines"][0].startswith("00000000      hay...")
        assert ask(wire, handle, f"offset={LINES}")["lines"][0].startswith(f"{LINES - 1:08}")
        assert ask(wire, handle, "search='needle'")["numbers"] == [LINES // 2 + 1]
        assert ask(wire, handle, "search='^0099999[0-9] +hay'")["returned"] == 10

    assert peak_growth_mb(wire, use) <= 64


def test_a_list_of_a_hundred_megabytes_is_read_by_path(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.rows(count={ROWS})")
        assert ask(wire, handle, "path='[99999].name'") == "row 99999"
        assert ask(wire, handle, "path='[-2:].id'") == [ROWS - 2, ROWS - 1]
        assert ask(wire, handle, "outline=True")["length"] == ROWS
        program = f"rows = ot.result(handle='{handle}', path='[50000:50100]')\nsum(row['id'] for row in rows)"
        assert int(wire.run(program).text) == sum(range(50_000, 50_100))

    assert peak_growth_mb(wire, use) <= 64


def test_the_answer_of_an_api_is_read_by_path_though_one_line_holds_nearly_all(wire: WireServer) -> None:
    def use() -> None:
        handle = handle_of(wire, f"large.api(count={ROWS})")
        outline = ask(wire, handle, "outline=True")
        assert outline["keys"] == {"count": "int", "results": "list", "next": "None"}
        assert ask(wire, handle, "path='results[0:2].id'") == [0, 1]
        assert ask(wire, handle, "path='count'") == ROWS
        assert ask(wire, handle, "path='next'") is None
        refused = wire.run(f"ot.result(handle='{handle}', path='results')", timeout=60)
        assert refused.is_error
        assert "a list of 100,000 items; read on with path='results[0:10]'" in refused.text

    assert peak_growth_mb(wire, use) <= 64


def test_a_handle_that_the_program_got_is_used_in_the_same_program(wire: WireServer) -> None:
    program = """
    try:
        large.rows(count=10_000)
    except RuntimeError as error:
        handle = str(error).split("handle='")[1].split("'")[0]
    page = ot.result(handle=handle, search='row 7777"')
    [page["numbers"], ot.result(handle=handle, path='[7777].id')]
    """
    assert json.loads(wire.run("\n".join(line[4:] for line in program.splitlines())).text) == [[7_778], 7_777]


SERVER = """
import sys
from pathlib import Path
from ot.workers.spool_directories import SpoolDirectories
directories = SpoolDirectories(Path(sys.argv[1]))
(directories.new() / "value.txt").write_text("x" * 1000)
print("spooled", flush=True)
sys.stdin.read()
"""


def age(place: Path) -> None:
    """Let everything in *place* seem as old as an hour."""
    for path in place.rglob("*"):
        os.utime(path, (0, time.time() - 3600))


def test_what_a_killed_server_has_spooled_goes_and_what_a_live_one_has_stays(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    other = SpoolDirectories(place)
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "spooled\n"
        age(place)
        other.sweep()
        assert other.total_bytes() == 1000
        server.kill()
    other.sweep()
    assert list(place.iterdir()) == []


def test_what_was_just_left_is_not_taken_from_who_is_about_to_hold_it(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    (place / "server-new").mkdir(parents=True)
    directories = SpoolDirectories(place)
    directories.sweep()
    assert [path.name for path in place.iterdir()] == ["server-new"]


def test_a_server_makes_its_directory_again_and_leaves_nothing_in_the_end(tmp_path: Path) -> None:
    place = tmp_path / "spool"
    directories = SpoolDirectories(place)
    first = directories.new()
    shutil.rmtree(place)
    second = directories.new()
    assert second.is_dir()
    assert first.parent == second.parent
    assert second.stat().st_mode & 0o777 == second.parent.stat().st_mode & 0o777 == 0o700
    age(place)
    SpoolDirectories(place).sweep()
    assert second.is_dir()
    directories.close()
    assert list(place.iterdir()) == []


CALLERS = 64
MOST_RATIO = 3
"""How much longer the answer to a call on a dying worker may take than to notice any process's death."""

ECHO = '''
import os
import time


def echo(*, nonce: str) -> str:
    """Return what was given, and say a lot beside it."""
    if nonce.endswith("7"):
        print("noise", nonce)
    if nonce.endswith("99"):
        os.write(1, b'{"jsonrpc":"2.0","id":"1","result":{"value":"SPOOFED"}}\\n')
    return nonce


def hold(*, began: str) -> None:
    """Be in the middle of a call, and let a file say so."""
    with open(began, "x"):
        time.sleep(30)
'''


async def wrong_replies(directory: Path, calls: int) -> list[object]:
    """Return what *calls* calls of 64 callers answered, where it was not their own."""
    door = Door(directory, [extension("crowd", ECHO)])
    wrong: list[object] = []

    async def caller(name: int) -> None:
        for number in range(calls // CALLERS):
            value = await door("crowd.echo", nonce=f"{name}-{number}")
            if value != f"{name}-{number}":
                wrong.append(value)

    try:
        await door("crowd.echo", nonce="first")
        await asyncio.gather(*map(caller, range(CALLERS)))
    finally:
        await door.aclose()
    return wrong


@fault("W37", repetitions=1)
@pytest.mark.timeout(300)
async def test_sixty_four_thousand_calls_of_sixty_four_callers_get_their_own_answers(
    tmp_path: Path, fault: Fault
) -> None:
    assert [] == await wrong_replies(tmp_path, 64_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_million_calls_of_sixty_four_callers_get_their_own_answers(tmp_path: Path) -> None:
    assert [] == await wrong_replies(tmp_path, 1_000_000)


async def killed(door: Door, began: Path) -> float:
    """Kill a worker in the middle of a call, and return how long the answer took."""
    await door("crowd.echo", nonce="alive")
    call = asyncio.create_task(door("crowd.hold", began=str(began)))
    # A call that the worker has not read would go to the next worker.
    await anyio.to_thread.run_sync(wait_for_file, began)
    os.kill(door.pid("crowd"), 9)
    begun = time.monotonic()
    with pytest.raises(WorkerDied, match="SIGKILL"):
        await call
    return time.monotonic() - begun


def wait_for_file(path: Path) -> None:
    """Return once *path* is there, and take it away."""
    while not path.exists():
        time.sleep(0.001)
    path.unlink()


async def control(directory: Path) -> float:
    """Kill a process that nobody calls, and return how long it took to notice."""
    process = await GuardedProcess.start(["sleep", "30"], env=dict(os.environ), cwd=directory)
    os.kill(process.pid, 9)
    begun = time.monotonic()
    await process.wait()
    return time.monotonic() - begun


async def deaths(directory: Path, number: int) -> None:
    """Let a worker die *number* times in a call: each is answered soon, and nothing is left."""
    door = Door(directory, [extension("crowd", ECHO)])
    try:
        began = directory / "began"
        await killed(door, began)
        await door("crowd.echo", nonce="alive")
        await asyncio.to_thread(int)  # the thread that looks after spooled replies comes when it is first needed
        before = open_files(), threading.active_count(), len(below_this())
        children_before = children_of(os.getpid())
        answers: list[float] = []
        controls: list[float] = []
        for each in range(number):
            answers.append(await killed(door, began))
            if each % 4 == 0:
                controls.append(await control(directory))
        await door("crowd.echo", nonce="alive")
        await door.pool._settle()
        assert before == (open_files(), threading.active_count(), len(below_this()))
        assert {*zombies_of(os.getpid())} <= {*children_before}
        assert 1 == len(list((directory / "spool").iterdir()))
        assert median(answers) <= MOST_RATIO * median(controls)
        assert max(answers) <= max(controls) + 1
    finally:
        await door.aclose()


@fault("W01", "W03", repetitions=1)
async def test_a_hundred_deaths_in_calls_are_answered_soon_and_leave_nothing(tmp_path: Path, fault: Fault) -> None:
    await deaths(tmp_path, 100)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_thousand_deaths_in_calls_are_answered_soon_and_leave_nothing(tmp_path: Path) -> None:
    await deaths(tmp_path, 1000)


@fault("W03")
async def test_too_many_deaths_close_the_pack_for_a_while_and_then_one_call_is_tried(
    tmp_path: Path, fault: Fault
) -> None:
    now = [0.0]
    door = Door(tmp_path, deaths=DEATHS, clock=lambda: time.monotonic() + now[0])
    try:
        for _ in range(5):
            with pytest.raises(WorkerDied):
                await door("faulty.kill")
        with pytest.raises(ToolBusy, match=r"died too often.*SIGKILL"):
            await door("faulty.echo", nonce="x")
        assert "refused" in door.pool.states()["faulty"]
        assert "x" == await door("calm.echo", nonce="x")
        now[0] = 0.1
        assert "x" == await door("faulty.echo", nonce="x")
        with pytest.raises(WorkerDied):
            await door("faulty.kill")
        with pytest.raises(ToolBusy):
            await door("faulty.echo", nonce="x")
        door.pool.hold("test", (spec.key for spec in door.specs.values()))
        with anyio.fail_after(10):
            assert "a reload opens it" == await door("faulty.echo", nonce="a reload opens it")
    finally:
        await door.aclose()
