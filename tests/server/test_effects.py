"""What a run did is said: after a kill, a timeout, a crash or a cancel, and what nobody knows."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.watched import Place
from faults.wire_eras import ERAS
from mcp_wire import ServerGone
from pace import wait_while
from server.asked_talk import NO, YES, AskedTalk

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


UNKNOWN = "may or may not have taken effect: find out before you repeat it"


@pytest.mark.parametrize("era", ERAS)
def test_after_a_kill_the_same_write_asks_first_and_another_does_not(tmp_path: Path, era: str) -> None:
    where = till_place(tmp_path)
    with TillTalk(where, era) as first:
        number = first.begin("till.note(amount=1)\ntill.pay(amount=2)\ntill.pay(amount=3, hold=True)")
        wait_while(lambda: first.paid != [1, 2, 3] and first.paid)
        os.killpg(first.wire.pid, signal.SIGKILL)
        with pytest.raises(ServerGone):
            first.wire.wait(number)
    with TillTalk(where, era) as second:
        (entry,) = second.effects()
        assert ("till.pay", 3, "unknown") == (entry["tool"], entry["line"], entry["state"])
        whole = [(row["tool"], row["state"]) for row in second.effects(entry["run"])]
        assert [("till.note", "done"), ("till.pay", "done"), ("till.pay", "unknown")] == whole

        second.go()
        reply = second.talk.run("till.pay(amount=3, hold=True)", NO)
        assert "till.pay was not called: the user said no" in reply.text
        (question,) = second.talk.questions
        assert f"(run {entry['run']}, line 3), and whether it took effect is unknown" in question["message"]
        assert [1, 2, 3] == second.paid

        assert "4" == second.talk.run("till.pay(amount=4, hold=True)").text
        assert "2" == second.talk.run("till.pay(amount=2)").text  # it is known what became of that one
        assert [1, 2, 3, 4, 2] == second.paid
        assert "3" == second.talk.run("till.pay(amount=3, hold=True)", YES).text
        assert [1, 2, 3, 4, 2, 3] == second.paid


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_without_a_mark_is_called_again_and_told_so(tmp_path: Path, era: str) -> None:
    with TillTalk(till_place(tmp_path), era) as till:
        number = till.begin("till.note(amount=3, hold=True)")
        till.wire.cancel(number)
        wait_while(lambda: not till.effects() and "the cancelled call is not listed")
        (entry,) = till.effects()
        assert ("till.note", "unknown") == (entry["tool"], entry["state"])

        till.go()
        reply = till.talk.run("till.note(amount=3, hold=True)")
        assert not reply.is_error
        assert "note: till.note is called again: the same call was sent at " in reply.text
        assert "is called again" not in till.talk.run("till.note(amount=4, hold=True)").text


def test_a_timeout_a_dead_worker_and_a_crashed_engine_are_told_in_the_reply(tmp_path: Path) -> None:
    with TillTalk(till_place(tmp_path, "engines: {use: portable}\n"), "modern") as till:
        before = "till.total()\ntill.note(amount=1)\n"
        died = till.talk.run(before + "till.fall(amount=2)").text
        assert "- till.note, line 2: took effect" in died
        assert f"- till.fall, line 3: {UNKNOWN}" in died

        worker = int(till.talk.run("till.worker()").text)
        number = till.begin("till.note(amount=5, hold=True)")
        for process in set(till.wire.children()) - {worker}:
            os.kill(process, signal.SIGKILL)
        crashed = till.wire.wait(number).text
        assert f"- till.note: {UNKNOWN}" in crashed or f"- till.note, line 1: {UNKNOWN}" in crashed

        till.where.config.write_text(till.where.config.read_text().replace("call_seconds: 20", "call_seconds: 0.2"))
        late = till.talk.run(before + "till.pay(amount=6, hold=True)").text
        assert f"- till.pay, line 3: {UNKNOWN}" in late
        caught = till.talk.run("try:\n    till.pay(amount=7, hold=True)\nexcept TimeoutError:\n    pass\n'went on'")
        assert not caught.is_error
        assert f"- till.pay, line 2: {UNKNOWN}" in caught.text
        assert 4 == len(till.effects())


def test_a_run_whose_calls_all_ended_and_one_that_only_reads_leave_nothing_open(tmp_path: Path) -> None:
    with TillTalk(till_place(tmp_path), "modern") as till:
        assert "0" == till.talk.run("till.total()").text
        assert not (till.where.home / ".onetool" / "ledger").exists()
        failed = till.talk.run("till.pay(amount=1)\n1 / 0")
        assert failed.is_error
        assert [] == till.effects()
        assert ["done"] == [row["state"] for row in till.effects(failed.meta["run"])]
