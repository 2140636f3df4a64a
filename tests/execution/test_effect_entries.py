"""The ledger at the door: which calls have an entry, what becomes of them without one, and who is asked again."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from callers import SOMEBODY_ELSE, asking
from ot.config.principal import os_user
from ot.execution.caller import Answer, Caller, Question
from ot.execution.effect_entries import EffectEntries
from ot.execution.ledger import NoLedger
from ot.files import shared_database
from ot.ledger import ledger_file
from ot.ledger.background_run import BackgroundRun
from ot.ledger.ledger_file import LEDGER
from ot.runtime.run_budget import RunStart
from ot.workspace import Workspace
from pace import times_as_long
from run_app import error_of, running_app

pytestmark = pytest.mark.anyio

SHOP = '''
    pack = "shop"
    __all__ = ["order", "wipe", "look", "hang", "hang_wiping"]
    __ot_read_only__ = ["look"]
    __ot_destructive__ = ["wipe", "hang_wiping"]
    ORDERS = []


    async def order(what: str) -> int:
        """Order something."""
        ORDERS.append(what)
        return len(ORDERS)


    async def wipe(what: str) -> int:
        """Order the end of something."""
        return await order(what)


    async def look() -> list:
        """Return the orders."""
        return list(ORDERS)


    async def hang(what: str) -> None:
        """Order something; the first time nobody hears of it."""
        import asyncio

        ORDERS.append(what)
        if ORDERS.count(what) == 1:
            await asyncio.sleep(600)


    async def hang_wiping(what: str) -> None:
        """Do the same, with a mark."""
        await hang(what)
'''
CONFIG: dict[str, Any] = {"policy": {"allow": ["shop.*", "file.*"]}, "limits": {"call_seconds": 0.6}}
MOST_TIMES = 2.0
"""benchmarks/ledger_ratio.py has the bar; here is room for a machine that is busy with other tests."""
YES, NO = Answer("accept", {"decision": "allow"}), Answer("decline")


class Buyer:
    """Somebody who answers, and whose questions are kept."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer


def shop(directory: Path, **config: Any) -> AbstractAsyncContextManager[Workspace]:
    return running_app(directory, {"shop": SHOP}, {**CONFIG, **config})


async def effects(app: Workspace, run: str) -> list[tuple[str, str]]:
    rows = (await app.run(f"ot.effects(run={run!r})")).value
    return [(row["tool"], row["state"]) for row in rows]


async def orders(app: Workspace) -> list[str]:
    return (await app.run("shop.look()")).value


# ---------------------------------------------------------------- what has an entry


async def test_a_run_that_changes_nothing_opens_no_ledger(tmp_path: Path) -> None:
    before = set(threading.enumerate())  # a ledger of another test may be among them

    def list_new() -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread not in before}

    async with shop(tmp_path, policy={"allow": ["shop.*"], "read_only": ["shop.wi*"]}) as app:
        (tmp_path / "work" / "b").write_text("words")
        program = "shop.look()\nshop.wipe(what='x')\nfile.list(path='.')\not.version()\nopen('b').read()"
        assert "words" == (await app.run(program)).value
        assert "onetool-ledger" not in list_new()
        assert not (tmp_path / "user" / LEDGER).parent.exists()
        assert 2 == (await app.run("shop.order(what='y')")).value
        assert "onetool-ledger" in list_new()
        assert (tmp_path / "user" / LEDGER).exists()


async def test_a_call_that_failed_is_not_taken_for_one_that_may_have_happened(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        failed = await app.run("file.delete(path='missing')")
        assert failed.is_error
        assert [("file.delete", "failed")] == await effects(app, failed.meta["run"])


async def test_pythons_own_file_functions_have_one_entry_a_tool_and_run(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        program = "for i in range(20):\n    open(f'{i}.txt', 'w').write('x')\nimport os\nos.remove('3.txt')\n1 / 0"
        cut = await app.run(program)
        assert [("file.write", "done"), ("file.delete", "done")] == await effects(app, cut.meta["run"])
        assert 19 == len(list((tmp_path / "work").iterdir()))


async def test_a_reply_comes_when_the_ledger_knows_how_its_calls_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ledger_file.LedgerFile.write_end

    def late(*args: Any) -> None:
        time.sleep(0.05)  # so that a reply which does not wait is the first
        real(*args)

    monkeypatch.setattr(ledger_file.LedgerFile, "write_end", late)
    async with shop(tmp_path) as app:
        await app.run("shop.order(what='a')\nopen('b', 'w').write('x')")
        with closing(sqlite3.connect(tmp_path / "user" / LEDGER)) as file:
            assert [("done",), ("done",)] == file.execute("SELECT state FROM effects").fetchall()


async def test_an_entry_adds_little_to_a_run(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    async with shop(tmp_path) as app, shop(tmp_path / "control") as control:
        control.picture.runner.executor._entries = EffectEntries(NoLedger())

        async def runs(of: Workspace) -> None:
            for _ in range(30):
                assert not (await of.run("shop.order(what='a')")).is_error

        await runs(app)
        assert MOST_TIMES > await times_as_long(lambda: runs(app), lambda: runs(control))
        assert not (tmp_path / "control" / "user" / LEDGER).exists()


# ---------------------------------------------------------------- the same call again


async def test_the_same_write_after_an_unknown_one_asks_and_a_no_sends_nothing(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        unknown = await app.run("shop.hang_wiping(what='lamp')")
        assert "did not answer within 0.6 s" in error_of(unknown)
        no = Buyer(NO)
        refused = error_of(await app.run("shop.hang_wiping(what='lamp')", asking(no)))
        assert "shop.hang_wiping was not called: the user said no" in refused
        assert f"(run {unknown.meta['run']}, line 1), and whether it took effect is unknown" in no.asked[0].message
        assert ["lamp"] == await orders(app)

        yes = Buyer(YES)
        assert not (await app.run("shop.hang_wiping(what='lamp')", asking(yes))).is_error
        assert (["lamp", "lamp"], 1) == (await orders(app), len(yes.asked))


async def test_another_argument_and_another_principal_are_not_asked(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        await app.run("shop.hang_wiping(what='lamp')")
        nobody = Buyer(NO)
        assert 2 == (await app.run("shop.wipe(what='lamp')", asking(nobody))).value
        other = Caller(SOMEBODY_ELSE.principal, ask=nobody)
        assert not (await app.run("shop.hang_wiping(what='lamp')", other)).is_error
        assert [] == nobody.asked
        assert [] == (await app.run("ot.effects()", other)).value  # nor told of


async def test_a_tool_without_a_mark_is_called_again_and_told_so(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        await app.run("shop.hang(what='lamp')")
        again = await app.run("shop.hang(what='lamp')")
        assert not again.is_error
        assert "note: shop.hang is called again: the same call was sent at" in again.text


async def test_an_unknown_effect_is_told_also_where_the_program_caught_it(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        reply = await app.run("try:\n    shop.hang(what='lamp')\nexcept TimeoutError:\n    found = 'caught'\nfound")
        assert not reply.is_error
        assert "- shop.hang, line 2: may or may not have taken effect" in reply.text


async def test_a_cancelled_call_is_unknown_and_one_that_was_not_sent_yet_failed(tmp_path: Path) -> None:
    async with shop(tmp_path, limits={"call_seconds": 20}) as app:
        run = asyncio.ensure_future(app.run("shop.hang(what='lamp')"))
        while not await orders(app):
            assert not run.done()
        run.cancel()
        await asyncio.wait((run,))
        (row,) = (await app.run("ot.effects()")).value
        assert ("shop.hang", "unknown") == (row["tool"], row["state"])


# ---------------------------------------------------------------- a ledger that cannot be written


@contextmanager
def locked(file: Path) -> Generator[None]:
    """Hold the file's lock, as another process in the middle of a long transaction does."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def no_directory(file: Path) -> Generator[None]:
    """Let something else be in the place of the ledger's directory."""
    kept = file.parent.rename(file.parent.with_name("kept")) if file.parent.exists() else None
    file.parent.write_text("not a directory")
    yield
    file.parent.unlink()
    if kept:
        kept.rename(file.parent)


async def test_a_call_that_cannot_be_written_down_is_sent_and_the_reply_says_so_once(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        with no_directory(tmp_path / "user" / LEDGER):
            reply = await app.run("[shop.order(what=w) for w in 'abc']")
            assert [1, 2, 3] == reply.value
            notes = [text for text in reply.texts if "not recorded" in text]
            assert 1 == len(notes)
            assert notes[0].startswith("note: 3 calls are not recorded in the ledger, so ot.effects() does not list")
            assert "not recorded" not in (await app.run("shop.look()")).text


async def test_a_locked_ledger_is_waited_for_once_and_not_for_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.3)
    async with shop(tmp_path, limits={"run_seconds": 5, "call_seconds": 5}) as app:
        assert 1 == (await app.run("shop.order(what='a')")).value
        with locked(tmp_path / "user" / LEDGER):
            reply = await app.run("for i in range(100):\n    last = shop.order(what=str(i))\nlast")
            assert 101 == reply.value
            assert "note: 100 calls are not recorded in the ledger" in reply.text
            assert "database is locked" in reply.text


async def test_with_refuse_nothing_is_sent_that_is_not_written_down(tmp_path: Path) -> None:
    async with shop(tmp_path, ledger={"unavailable": "refuse"}) as app:
        with no_directory(tmp_path / "user" / LEDGER):
            reply = await app.run("shop.order(what='a')")
            assert "shop.order was not called: the call could not be written to the ledger first" in error_of(reply)
            assert "file.write was not called" in error_of(await app.run("open('a.txt', 'w')"))
        assert [] == await orders(app)
        assert 1 == (await app.run("shop.order(what='a')")).value


async def test_a_run_in_the_background_is_refused_whatever_the_setting_says(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        ledger = app.host.ledger(app, app.picture.loaded.config.ledger)
        await ledger.add(BackgroundRun("r1", os_user(), "", 0.0), 10)
        start = await ledger.begin("r1")
        assert start is not None
        assert 1 == (await app.run("shop.order(what='a')", background=RunStart("r1", start.number, 20))).value
        with closing(sqlite3.connect(tmp_path / "user" / LEDGER)) as broken:
            broken.execute("DROP TABLE effects")
        later = await app.run("shop.order(what='b')", background=RunStart("r1", start.number, 20))
        assert "shop.order was not called: the call could not be written to the ledger first" in error_of(later)
        assert 2 == (await app.run("shop.order(what='c')")).value


async def test_a_ledger_that_cannot_be_read_is_told_as_that(tmp_path: Path) -> None:
    async with shop(tmp_path) as app:
        with no_directory(tmp_path / "user" / LEDGER):
            assert "the ledger is unavailable: " in error_of(await app.run("ot.effects()"))
