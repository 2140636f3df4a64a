"""Shared server, relay and client are killed in every order, under load: no answer is wrong, nothing is left."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from ot.cli.diagnosis.leftovers import orphans
from pace import PATIENCE, wait_while
from shared_bed import SharedBed, asked_bed, kill, own_command

CLIENT = Path(__file__).with_name("steady_client.py")
UNKNOWN = "its effect is not known"
ENDING = "ServerEnding"


class WatchedClient:
    """One client and its relay; a thread reads what the client tells."""

    def __init__(self, house: SharedBed) -> None:
        """Start the client in *house*."""
        self._process = subprocess.Popen(
            [sys.executable, str(CLIENT), *own_command("serve", "--shared")],
            cwd=house.cwd, env=house.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._told: list[dict[str, Any]] = []
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kill(self.pid)
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self._process.stdout:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The client's process."""
        return self._process.pid

    @property
    def relay(self) -> int:
        """The process of its relay."""
        return next(one["relay"] for one in self.told if "relay" in one)

    @property
    def told(self) -> list[dict[str, Any]]:
        """All that it has told."""
        with self._news:
            return list(self._told)

    def wait_for_answers(self, count: int, *, good: bool = True) -> None:
        """Return when it has had *count* more answers, right ones if they are to be *good*, or has ended."""
        before = self._count(good)
        with self._news:
            enough = self._news.wait_for(lambda: self._ended or self._count(good) >= before + count, PATIENCE * 2)
        assert enough, self._told[-5:]

    def _count(self, good: bool) -> int:
        return sum("answered" in one and (not good or "text" in one) for one in self._told)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # a killed client may leave half of one
                with self._news:
                    self._told.append(json.loads(line))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def check(self) -> None:
        """Every answer is right or says that the effect is not known; each request has one, unless all was over."""
        told = self.told
        assert [one for one in told if "junk" in one] == []
        answers = [one for one in told if "answered" in one]
        wrong = [one for one in answers if not _is_right(one)]
        assert wrong == []
        numbers = [one["answered"] for one in answers]
        assert len(numbers) == len(set(numbers))
        unanswered = {one["asked"] for one in told if "asked" in one} - set(numbers)
        # Those that are open at this moment have been asked just now.
        assert len(unanswered) <= 3


def _is_right(answer: dict[str, Any]) -> bool:
    if "error" in answer:
        return UNKNOWN in answer["error"]
    return answer["text"] == str(answer["answered"] * 7) or (answer["is_error"] and ENDING in answer["text"])


ORDERS = list(itertools.permutations(("server", "relay", "client")))
ROUNDS = 5
"""With six orders each, that is thirty times."""
SOAK_ROUNDS = 50


def kill_in_all_orders(house: SharedBed, pause: int) -> int:
    """Kill the shared server, with clients around it of which each order kills another part before and after it."""
    with ExitStack() as stack:
        victims = {order: stack.enter_context(WatchedClient(house)) for order in ORDERS}
        bystander = stack.enter_context(WatchedClient(house))
        for client in (*victims.values(), bystander):
            client.wait_for_answers(3)
        server = house.daemon()
        for order, victim in victims.items():
            kill_parts(victim, order[: order.index("server")], pause)
        kill(server)
        for order, victim in victims.items():
            kill_parts(victim, order[order.index("server") + 1 :], pause)
        bystander.wait_for_answers(3)
        pids = [server, *(pid for victim in victims.values() for pid in (victim.relay, victim.pid))]
        wait_while(lambda: [pid for pid in pids if is_alive(pid)])
        for client in (*victims.values(), bystander):
            client.check()
        return server


def kill_parts(victim: WatchedClient, names: tuple[str, ...], pause: int) -> None:
    """Kill the client or its relay, in this order, with *pause* answers between."""
    for name in names:
        kill(victim.pid if name == "client" else victim.relay)
        victim.wait_for_answers(pause, good=False)


def is_alive(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except OSError:
        return False


def processes_of(house: SharedBed) -> list[str]:
    """Return the command lines of all processes that have the house's home or a path of it in their environment."""
    home, found = os.fsencode(house.home), list[str]()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if home in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


def play(root: Path, rounds: int) -> None:
    servers: set[int] = set()
    with asked_bed(root) as house:
        for number in range(rounds):
            servers.add(kill_in_all_orders(house, number % 3))
        servers.add(house.daemon())
    wait_while(lambda: processes_of(house) or [one for one in orphans() if one.server in servers])


@pytest.mark.timeout(900)
def test_killed_in_all_orders_nothing_is_wrong_and_nothing_is_left(tmp_path: Path) -> None:
    play(tmp_path, ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_killed_in_all_orders_three_hundred_times(tmp_path: Path) -> None:
    play(tmp_path, SOAK_ROUNDS)
