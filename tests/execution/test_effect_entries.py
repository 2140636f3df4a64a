"""The ledger at the door: which calls have an entry, what becomes of them without one, and who is asked again."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from callers import SOMEBODY_ELSE, asking
from ot.execution.caller import Answer, Question
from ot.ledger.ledger_file import LEDGER
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
        """Order something and never say so."""
        import asyncio

        if what not in ORDERS:
            ORDERS.append(what)
            await asyncio.sleep(600)
        ORDERS.append(what)


    async def hang_wiping(what: str) -> None:
        """Do the same, with a mark."""
        await hang(what)
'''
ALLOWED = {"policy": {"allow": ["shop.*", "file.*"]}, "limits": {"call_seconds": 0.2}}
YES = Answer("accept", {"decision": "allow"})


class Person:
    """Somebody who answers, and whose questions are kept."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return self.answer


def shop(directory: Path, **config: Any) -> Any:
    return running_app(directory, {"shop": SHOP}, {**ALLOWED, **config})


async def effects(app: Workspace, run: str = "") -> list[tuple[str, str]]:
    rows = (await app.run(f"ot.effects(run={run!r})")).value
    return [(row["tool"], row["state"]) for row in rows]


async def orders(app: Workspace) -> list[str]:
    return (await app.run("shop.look()")).value


# ---------------------------------------------------------------- what has an entry


async def test_a_run_that_changes_nothing_opens_no_ledger(tmp_path: Path) -> None:
    async with shop(tmp_path, policy={"allow": ["*"], "read_only": ["shop.wi*"]}) as app:
        before = threading.active_count()
        reply = await app.run("shop.look()\nshop.wipe(what='x')\nfile.list(path='.')\not.version()\nopen('a', 'a').name")
        assert not reply.is_error or "FileNotFound" in reply.text
        (tmp_path / "work" / "b").write_text("b")
        assert "b" == (await app.run("open('b').read()")).value
    assert not (tmp_path / "user" / LEDGER).parent.exists() or before
