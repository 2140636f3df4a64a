"""The ledger of one user: what was sent is known over a crash, and the same call again is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger.ledger_beds import background, effect, until
from ot.errors import LedgerUnavailable
from ot.files import shared_database
from ot.ledger import ledger_file
from ot.ledger.background_run import RunEnd
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger
from pace import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(LedgerFile(path))
    yield ledger
    ledger.close()


async def states(ledger: SqliteLedger, run: str = "r1", principal: str = "ada") -> list[str]:
    return [entry.state for entry in await ledger.of_run(principal, run)]


async def test_until_something_is_written_there_is_no_file(path: Path, ledger: SqliteLedger) -> None:
    assert "onetool-ledger" not in {thread.name for thread in threading.enumerate()}
    assert not path.exists()  # noqa: ASYNC240 - a look at a file


async def test_arguments_are_not_in_the_file(path: Path, ledger: SqliteLedger) -> None:
    await ledger.send(effect(token="canary-4711"))
    ledger.close()
    assert b"canary" not in b"".join(file.read_bytes() for file in path.parent.glob("ledger.db*"))
    assert 0o600 == path.stat().st_mode & 0o777  # noqa: ASYNC240 - a look at a file


async def test_a_file_of_the_first_version_is_taken_over_and_its_calls_belong_to_no_directory(path: Path) -> None:
    before = SqliteLedger(LedgerFile(path))
    await before.send(effect())
    before.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE effects DROP COLUMN directory")
        file.execute("PRAGMA user_version = 1")
    ledger = SqliteLedger(LedgerFile(path))
    await ledger.send(replace(effect(call=2, amount=6), directory="/a"))
    assert ["", "/a"] == [entry.directory for entry in await ledger.of_run("ada", "r1")]
    assert [2] == [entry.call for entry in await ledger.of_run("ada", "r1", "/a")]
    ledger.close()


async def test_of_many_runs_of_other_directories_none_takes_the_place_of_one_here(ledger: SqliteLedger) -> None:
    await ledger.add(replace(background("mine", created=1.0), directory="/a"), 100)
    for n in range(5):
        await ledger.add(replace(background(f"b{n}", created=2.0 + n), directory="/b"), 100)
    assert ["mine"] == [status.run.id for status in await ledger.runs("ada", 3, "/a")]


async def test_what_is_too_old_is_removed(path: Path) -> None:
    now = 1e9
    ledger = SqliteLedger(LedgerFile(path, days=30, clock=lambda: now))
    await ledger.send(effect())
    now += 31 * 86_400
    await ledger.send(effect("r2"))
    assert [] == await states(ledger)
    ledger.close()


async def test_what_a_run_did_that_has_not_ended_is_kept_however_old_it_is(path: Path) -> None:
    now = 1e9
    ledger = SqliteLedger(LedgerFile(path, days=30, clock=lambda: now))
    await ledger.add(background(created=now), 10)
    await ledger.begin("b1")
    await ledger.send(effect("b1", start=1))
    now += 31 * 86_400
    await ledger.send(effect("r2", amount=2))
    assert ["sent"] == await states(ledger, "b1"), "the next start has to know what it did"
    await ledger.end("b1", 1, RunEnd("done", now))
    now += 3601
    await ledger.send(effect("r3", amount=3))
    assert [] == await states(ledger, "b1")
    ledger.close()


async def test_a_ledger_that_cannot_be_written_lets_nothing_be_sent(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("a file where a directory should be")
    ledger = SqliteLedger(LedgerFile(tmp_path / "ledger" / "ledger.db"))
    with pytest.raises(LedgerUnavailable):
        await ledger.send(effect())
    ledger.close()


KILLED = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from ledger.test_sqlite_ledger import LedgerFile, SqliteLedger, effect
async def main():
    ledger = SqliteLedger(LedgerFile(Path({path!r})))
    await ledger.send(effect())
    print("sent", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_what_a_killed_server_had_sent_is_unknown_and_what_a_living_one_sends_is_not(
    path: Path, ledger: SqliteLedger
) -> None:
    code = KILLED.format(tests=str(Path(__file__).parent.parent), path=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it only waits to be killed
        assert process.stdout
        assert b"sent\n" == process.stdout.readline()
        assert ["sent"] == await states(ledger)
        assert await ledger.send(effect("r2")) is None  # the other is still at it
        ledger.record_end(effect("r2"), "done")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert ["unknown"] == await states(ledger)
    found = await ledger.send(effect("r3"))
    assert found is not None
    assert "r1" == found.run_id
    assert ["r1"] == [entry.run for entry in await ledger.unknown("ada")]


# ---------------------------------------------------------------- on the event loop, or by the thread


class Writers:
    """Which threads have written a call so far."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        real = LedgerFile.send

        def send(file: LedgerFile, *args: Any) -> Any:
            self.names.append(threading.current_thread().name)
            return real(file, *args)

        monkeypatch.setattr(LedgerFile, "send", send)


async def states_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        return [state for (state,) in file.execute("SELECT state FROM effects ORDER BY run, call")]


async def test_once_the_file_is_open_a_call_is_written_without_a_thread_and_the_end_before_it_too(
    path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = Writers(monkeypatch)
    for call in (1, 2, 3):
        await ledger.send(effect(call=call, amount=call))
        assert ["done"] * (call - 1) + ["sent"] == await states_in(path)
        ledger.record_end(effect(call=call, amount=call), "done")
    await ledger.settle()
    assert ["done"] * 3 == await states_in(path)
    assert ["onetool-ledger", "MainThread", "MainThread"] == writers.names


async def test_with_power_every_call_is_synced_by_the_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers = Writers(monkeypatch)
    ledger = SqliteLedger(LedgerFile(path, power=True))
    for call in (1, 2):
        await ledger.send(effect(call=call, amount=call))
        ledger.record_end(effect(call=call, amount=call), "done")
    await ledger.settle()
    assert ["done"] * 2 == await states_in(path)
    assert {"onetool-ledger"} == set(writers.names)
    ledger.close()


async def test_while_another_process_writes_the_event_loop_goes_on_and_the_call_waits(
    path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 2 * PATIENCE)
    await ledger.send(effect())
    ledger.record_end(effect(), "done")
    async with asyncio.timeout(PATIENCE):
        await sent_while_another_writes(path, ledger)
    assert ["done", "sent"] == await states_in(path)


async def sent_while_another_writes(path: Path, ledger: SqliteLedger) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        sending = asyncio.ensure_future(ledger.send(effect(call=2, amount=2)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sending.done()
        other.execute("COMMIT")
    assert await sending is None


async def test_the_end_of_a_call_is_written_soon_though_nothing_follows(path: Path, ledger: SqliteLedger) -> None:
    await ledger.send(effect())
    ledger.record_end(effect(), "done")

    async def is_written() -> bool:
        return ["done"] == await states_in(path)

    await until(is_written)


async def test_a_long_log_is_copied_into_the_file_by_the_thread(
    path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "COMMITS", 3)
    monkeypatch.setattr(ledger_file, "PAGES", 1)
    writers = Writers(monkeypatch)
    copied: list[bytes] = []
    for call in range(5):
        await ledger.send(effect(call=call, amount=call))
        copied.append(path.read_bytes())  # noqa: ASYNC240 - a look at a file
    assert ["onetool-ledger", *["MainThread"] * 3, "onetool-ledger"] == writers.names
    assert [copied[0]] * 4 == copied[:4]
    assert copied[4] != copied[3]
