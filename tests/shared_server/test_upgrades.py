"""Another version is installed while clients are connected, or a server cannot be started: no client is left alone."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_wire import ServerGone, WireReply, WireServer
from pace import wait_while
from server_process import process_tree
from shared_bed import SharedBed, is_alone, kill, shared_bed, wait_until_connected, wait_until_gone
from shared_server.installed_copy import InstalledCopy, InstalledWheels


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> InstalledCopy:
    """An installation for all tests of this file."""
    return InstalledCopy(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedBed]:
    """The user of that installation."""
    with shared_bed(tmp_path_factory.mktemp("user")) as user:
        yield user


def _relays(client: WireServer) -> list[int]:
    """Return the processes of a client: its relay, and that of a newer version."""
    return sorted(one.pid for one in process_tree(client.pid))


def test_a_call_while_the_environment_is_made_anew_waits_for_it(user: SharedBed, copy: InstalledCopy) -> None:
    with copy.client(user) as client:
        assert client.run("1 + 1").text == "2"
        with copy.removed():
            user.kill_daemon()
            call = client.send_run("2 + 2")
            client.wait_for_stderr("no server yet")
        assert client.wait(call).text == "4"
        assert not is_alone(client)
        assert client.run("3 + 3").text == "6"


def test_a_call_that_no_server_takes_is_an_error_and_the_next_one_works(user: SharedBed, copy: InstalledCopy) -> None:
    with copy.client(user, shared_seconds=0.0) as client:
        assert client.run("1 + 1").text == "2"
        with copy.removed("ot"):
            user.kill_daemon()
            for _ in range(2):
                said = client.run("2 + 2")
                assert "no server could be started, so nothing was done" in said.text
                assert said.error["code"] == -32000
            assert client.request("tools/list").is_error
        assert client.run("3 + 3").text == "6"
        assert client.stdout_junk == []


def test_after_upgrades_a_client_is_served_by_the_version_that_is_installed_now(
    user: SharedBed, copy: InstalledCopy
) -> None:
    with copy.client(user) as client:
        assert client.run("1 + 1").text == "2"
        for number in range(2):
            old = user.daemon()
            copy.upgrade()
            wait_while(lambda: user.daemons() and "the old server still takes clients")
            assert client.run("'served on'").text == "served on"
            kill(old)
            wait_until_gone(old)
            wait_while(lambda: len(_relays(client)) != 1 and _relays(client))
            assert client.run(f"{number} + 5").text == str(number + 5)
            assert not is_alone(client)
            assert user.connections() == 1
            # Its relay, and one of the version that is installed: a third upgrade adds none.
            wait_while(lambda: len(_relays(client)) != 2 and _relays(client))
        assert client.request("tools/list").result["tools"]
        assert client.stdout_junk == []


def _in_session(command: str) -> dict[str, Any]:
    return {"name": "run", "arguments": {"command": command, "session": "s"}}


def test_who_was_served_alone_returns_when_nothing_is_kept_for_it(user: SharedBed, copy: InstalledCopy) -> None:
    with copy.client(user, shared_seconds=0.0) as client:
        start = user.socket().with_suffix(".start")
        with start.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # as by another client that hangs while it starts the server
            user.kill_daemon()
            client.request("tools/call", _in_session("x = 7"))
        assert is_alone(client)
        assert client.request("tools/call", _in_session("x")).text == "7"
        own = _relays(client)
        assert user.daemons() == []
        client.run("ot.session(name='s', action='clear')")
        client.wait_for_stderr("served by the shared server again")
        assert client.run("1 + 1").text == "2"
        assert user.connections() == 1
        wait_while(lambda: len(_relays(client)) != 1 and f"{own} were its processes, {_relays(client)} are")
        assert client.stdout_junk == []


def kill_starting_servers(user: SharedBed, copy: InstalledCopy, count: int) -> None:
    """Kill the shared server, and its next two successors as soon as a client greets them."""
    with ExitStack() as stack:
        clients = [stack.enter_context(copy.client(user)) for _ in range(count)]
        killed = [user.kill_daemon()]
        calls = [client.send_run(f"{number} * 7") for number, client in enumerate(clients)]
        for _ in range(2):
            wait_while(lambda: not set(user.daemons()) - set(killed) and "no server has started")
            wait_until_connected(user.socket(), 1)
            killed.append(user.kill_daemon())
        said = [client.wait(call, 60.0).text for client, call in zip(clients, calls, strict=True)]
        assert said == [str(number * 7) for number in range(count)]
        wait_while(lambda: user.connections() != count and f"{user.connections()} of {count} are not alone")


def test_starting_servers_that_are_killed_leave_nobody_alone(user: SharedBed, copy: InstalledCopy) -> None:
    kill_starting_servers(user, copy, 3)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_starting_servers_that_are_killed_leave_none_of_ten_alone(user: SharedBed, copy: InstalledCopy) -> None:
    kill_starting_servers(user, copy, 10)


# ---------------------------------------------------------------- thirty upgrades


class Busy:
    """A client that asks, one call after the other or when it is told to, and counts what it is answered."""

    def __init__(self, client: WireServer, effects: Path) -> None:
        self._client = client
        self._effects = effects
        self._ended = threading.Event()
        self.counts = Counter[str]()
        self.slowest = 0.0
        self._number = 0
        self._done = set[int]()
        self._thread = threading.Thread(target=self._ask_without_pause)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread.ident:
            self._thread.join()

    def _ask_without_pause(self) -> None:
        while not self._ended.is_set() and not self.counts["disconnected"]:
            self.ask()

    def ask(self) -> None:
        """Ask for an effect and a product that no other call has."""
        self._number += 1
        write = f"file.write(path={self._effects.name!r}, content='{self._number}\\n', append=True)"
        begun = time.monotonic()
        try:
            said = self._client.run(f"{write}\n{self._number} * 7", timeout=120.0)
        except (ServerGone, OSError) as error:
            self.counts["late" if isinstance(error, TimeoutError) else "disconnected"] += 1
            return
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.counts[self._kind(said)] += 1

    def _kind(self, said: WireReply) -> str:
        if said.text == str(self._number * 7):
            self._done.add(self._number)
            return "right"
        known = {"nothing was done": "not sent", "its effect is not known": "unknown", "ServerEnding": "ending"}
        known["cannot be loaded: file.py: [Errno 2]"] = "pack away"
        return next((kind for words, kind in known.items() if words in said.text), f"wrong: {said.text[:300]}")

    def check(self) -> None:
        """Each effect is there once at most, and once for each call that was answered."""
        found = Counter(map(int, self._effects.read_text().split()))
        assert [number for number, count in found.items() if count > 1] == []
        assert self._done - set(found) == set()
        bad = {kind for kind in self.counts if kind.startswith(("wrong", "late", "disconnected"))}
        assert bad == set(), self.counts
        assert self._client.stdout_junk == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thirty_upgrades_under_busy_and_idle_clients_disconnect_nobody(tmp_path: Path) -> None:
    wheels = InstalledWheels(tmp_path / "installed")
    chance = random.Random(30)
    with shared_bed(tmp_path / "user") as user, ExitStack() as stack:
        clients = [Busy(stack.enter_context(wheels.client(user)), user.cwd / f"{number}.txt") for number in range(5)]
        for client in clients:
            client.ask()
        for client in clients[:3]:
            stack.callback(client.end)
            client.start()
        for number in range(30):
            _upgrade(wheels, user, chance)
            if chance.random() < 0.5:
                clients[3 + number % 2].ask()
        for client in clients:
            client.end()
            right = client.counts["right"]
            client.ask()
            assert client.counts["right"] == right + 1, client.counts  # whatever was away is not away for good
            client.check()
        for client in clients:
            sys.stdout.write(f"{dict(client.counts)}, slowest {client.slowest:.1f} s\n")
        assert all(client.counts["right"] > 10 for client in clients[:3])


def _upgrade(wheels: InstalledWheels, user: SharedBed, chance: random.Random) -> None:
    """Install the other version, with the server killed or ended at a moment of its own, and files away for another."""
    ends = chance.choice((None, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
    with ThreadPoolExecutor(1) as pool:
        time.sleep(chance.uniform(0.0, 3.0))
        hurt = pool.submit(_end_servers, user, ends, chance.uniform(0.0, 1.5))
        wheels.upgrade()
        if chance.random() < 0.5:
            with wheels.removed(chance.choice(("ot", "ot_packs", "ot_tools", "mcp_core"))):
                if ends:
                    _end_servers(user, ends, 0.0)
                time.sleep(chance.uniform(0.1, 2.0))
        hurt.result()


def _end_servers(user: SharedBed, how: int | None, delay: float) -> None:
    """End all shared servers, also those that have retired and still serve their clients."""
    time.sleep(delay)
    for process in psutil.process_iter(["cmdline"]) if how else ():
        if any(str(user.runtime) in word for word in process.info["cmdline"] or ()):
            with suppress(ProcessLookupError):
                os.kill(process.pid, how or 0)
