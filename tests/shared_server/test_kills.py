"""Shared server, relay and client are killed in every order, under load: no answer is wrong, and nothing is left."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from ot.cli.diagnosis.leftovers import orphans
from pace import wait_while
from shared_server.shared_house import SharedHouse, kill, shared_house
from shared_server.watched_client import WatchedClient

ORDERS = list(itertools.permutations(("server", "relay", "client")))
ROUNDS = 5
SOAK_ROUNDS = 50


def kill_in_order(house: SharedHouse, order: tuple[str, ...], pause: int) -> int:
    """Kill all three of a client in *order*, with *pause* answers between, while another client keeps asking."""
    with WatchedClient(house) as victim, WatchedClient(house) as bystander:
        victim.wait_for_answers(3)
        bystander.wait_for_answers(3)
        server = house.daemon()
        pids = {"server": server, "relay": victim.relay, "client": victim.pid}
        for name in order:
            kill(pids[name])
            victim.wait_for_answers(pause, good=False)
        bystander.wait_for_answers(3)
        victim.check()
        bystander.check()
        wait_while(lambda: [name for name, pid in pids.items() if is_alive(pid)])
        return server


def is_alive(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except OSError:
        return False


def processes_of(house: SharedHouse) -> list[str]:
    """Return the command lines of all processes that have the house's home or a path of it in their environment."""
    home, found = os.fsencode(house.place.home), list[str]()
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
    with shared_house(root) as house:
        for number in range(rounds):
            for order in ORDERS:
                servers.add(kill_in_order(house, order, number % 3))
        last = house.daemon()
    servers.add(last)
    wait_while(lambda: processes_of(house) or [one for one in orphans() if one.server in servers])


@pytest.mark.timeout(900)
def test_killed_in_all_orders_nothing_is_wrong_and_nothing_is_left(tmp_path: Path) -> None:
    play(tmp_path, ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_killed_in_all_orders_three_hundred_times(tmp_path: Path) -> None:
    play(tmp_path, SOAK_ROUNDS)
