"""A real server on stdio with a pack ``till``, whose calls can be held up and leave a trace of what they did."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from faults.watched import Place
from pace import wait_while
from server.asked_talk import AskedTalk

SERVER = (str(Path(sys.executable).with_name("onetool")), "serve")
CONFIG = "logs: {level: WARNING}\npolicy: {allow: ['till.*']}\nlimits: {call_seconds: 20}\n"
TILL = '''
"""Pays."""

import os
import time
from pathlib import Path

HOME = Path(__file__).parents[3]
__ot_destructive__ = ["pay"]
__ot_read_only__ = ["total"]


def pay(amount: int, hold: bool = False) -> int:
    """Pay once more, and wait for as long as it is held."""
    with (HOME / "paid.txt").open("a") as file:
        file.write(f"{amount}\\n")
    while hold and not (HOME / "go").exists():
        time.sleep(0.01)
    return amount


def note(amount: int, hold: bool = False) -> int:
    """Do the same, without a mark that says so."""
    return pay(amount, hold)


def fall(amount: int) -> None:
    """Pay, and die."""
    pay(amount)
    os._exit(9)


def total() -> int:
    """Count the payments."""
    return len((HOME / "paid.txt").read_text().split()) if (HOME / "paid.txt").exists() else 0


def worker() -> int:
    """Return the id of the process that this is."""
    return os.getpid()
'''


def till_place(root: Path, config: str = "") -> Place:
    """Return the directories of a server whose user has the pack."""
    made = Place.make(root, CONFIG + config)
    pack = made.home / ".onetool" / "tools" / "till"
    pack.mkdir(parents=True, exist_ok=True)
    (pack / "till_tools.py").write_text(TILL)
    return made


class TillTalk:
    """A conversation in one of the eras."""

    def __init__(self, where: Place, era: str) -> None:
        self.where = where
        self.talk = AskedTalk.start(where, era, command=SERVER)
        self.wire = self.talk.wire

    def __enter__(self) -> TillTalk:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    @property
    def paid(self) -> list[int]:
        """What was paid so far, according to the tools themselves."""
        file = self.where.home / "paid.txt"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def go(self) -> None:
        """Let calls that are held return."""
        (self.where.home / "go").touch()

    def begin(self, command: str) -> Any:
        """Send a program and return the request's id, once it has paid."""
        before = len(self.paid)
        number = self.talk.send(command)
        wait_while(lambda: len(self.paid) == before and "nothing was paid")
        return number

    def effects(self, run: str = "") -> list[dict[str, Any]]:
        """Return what ``ot.effects`` says."""
        reply = self.talk.run(f"__format__ = 'json'\not.effects(run={run!r})")
        assert not reply.is_error, reply.text
        return json.loads(reply.text)
