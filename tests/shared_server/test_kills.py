"""Shared server, relay and client are killed in every order, under load: no answer is wrong, and nothing is left."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon.shared_user import kill
from ot.cli.diagnosis.leftovers import orphans
from pace import wait_while
from shared_server.shared_house import SharedHouse, shared_house
from shared_server.watched_client import WatchedClient

ORDERS = list(itertools.permutations(("server", "relay", "client")))
ROUNDS = 5
"""With six orders each, that is thirty times."""
SOAK_ROUNDS = 50


def kill_in_all_orders(house: SharedHouse, pause: int) -> int:
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


def processes_of(house: SharedHouse) -> list[str]:
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
    with shared_house(root) as house:
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
