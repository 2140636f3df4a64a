"""Which server a client is given, and when: the shared one, a newer relay's or its own, and never none for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from ot.relay import tries as tries_module
from ot.relay.place import Hangs, NotNow, Unshared
from ot.relay.tries import ALONE, ALONE_SECONDS, MOST_ENDS, SHARED, SHARED_SECONDS, SUCCESSOR, Tries

GONE = NotNow("gone")


class FakeServers:
    """Servers that can be reached or not, as a test says, and what was asked of them."""

    def __init__(self) -> None:
        self.problem: Exception | None = None
        self.alone_problem: OSError | None = None
        self.is_replaced = False
        self.is_ready = False
        self.asked: list[str] = []

    def replaced(self) -> bool:
        return self.is_replaced

    def join_shared(self) -> Any:
        self.asked.append(SHARED)
        if self.problem:
            raise self.problem
        return "socket"

    def join_shared_if_ready(self) -> Any:
        return "socket" if self.is_ready else None

    def alone(self) -> Any:
        self.asked.append(ALONE)
        if self.alone_problem:
            raise self.alone_problem
        return "requests", "answers"

    def successor(self) -> Any:
        self.asked.append(SUCCESSOR)
        return "requests", "answers"


class Clock:
    """The time, which goes on when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all tries."""
    clock = Clock()
    monkeypatch.setattr(tries_module, "time", clock)
    return clock


@pytest.fixture
def servers() -> FakeServers:
    """Servers of which all can be reached."""
    return FakeServers()


@pytest.fixture
def tries(servers: FakeServers, clock: Clock) -> Tries:
    """The tries of a client that has just lost its server."""
    return Tries(cast("Any", servers))


def _tried_until_over(tries: Tries, clock: Clock, dies: Callable[[str], bool]) -> float | None:
    """Try until a server is found that does not die, and return how long that took; nothing if it was given up."""
    begun = clock.now
    while True:
        try:
            tries.next_server()
            if not dies(tries.kind):
                tries.succeed()
                return clock.now - begun
        except (Unshared, OSError):
            pass
        pause = tries.pause(is_urgent=True)
        if pause is None:
            return None
        clock.now += pause


def test_a_server_that_cannot_be_reached_is_tried_again_for_a_while_before_the_client_is_alone(
    tries: Tries, servers: FakeServers, clock: Clock
) -> None:
    servers.problem = GONE
    taken = _tried_until_over(tries, clock, lambda _: False)
    assert taken is not None
    assert SHARED_SECONDS <= taken <= 2 * SHARED_SECONDS + tries_module.LONGEST_PAUSE * 2
    assert servers.asked.count(SHARED) >= 3
    assert (servers.asked[-1], servers.asked.count(ALONE)) == (ALONE, 1)


def test_clients_that_lost_the_same_server_are_not_alone_at_the_same_moment(servers: FakeServers, clock: Clock) -> None:
    servers.problem = GONE
    taken = {_tried_until_over(Tries(cast("Any", servers)), clock, lambda _: False) for _ in range(10)}
    assert len(taken) > 5


def test_a_server_that_hangs_is_not_waited_for_twice(tries: Tries, servers: FakeServers, clock: Clock) -> None:
    servers.problem = Hangs("no answer")
    assert tries.first_server() is None
    assert _tried_until_over(tries, clock, lambda _: False) == 0.0
    assert servers.asked == [SHARED, ALONE]


def test_a_client_that_is_refused_stays_alone(tries: Tries, servers: FakeServers, clock: Clock) -> None:
    servers.problem = Unshared("confined differently")
    with pytest.raises(Unshared):
        tries.first_server()
    assert _tried_until_over(tries, clock, lambda _: False) == 0.0
    assert tries.succeed() is None
    tries.next_server()
    assert servers.asked == [SHARED, SHARED, ALONE, ALONE]


def test_where_no_server_works_the_tries_end_and_the_next_call_is_quicker(
    tries: Tries, servers: FakeServers, clock: Clock
) -> None:
    servers.problem, servers.alone_problem = GONE, OSError("no such file")
    assert _tried_until_over(tries, clock, lambda _: True) is None
    servers.asked.clear()
    begun = clock.now
    assert _tried_until_over(tries, clock, lambda _: True) is None
    assert servers.asked == [SHARED, ALONE]
    assert clock.now - begun < 1.0
    servers.problem = None
    assert _tried_until_over(tries, clock, lambda _: False) == 0.0
    assert tries.kind == SHARED


def test_servers_that_die_before_they_answer_are_given_up_as_well(
    tries: Tries, servers: FakeServers, clock: Clock
) -> None:
    servers.is_replaced = True
    assert _tried_until_over(tries, clock, lambda _: True) is None
    assert set(servers.asked) == {SUCCESSOR}
    # The shared server's time at its longest, and a pause at its longest before each of the last tries.
    longest = 2 * SHARED_SECONDS + 2 * tries_module.LONGEST_PAUSE * (tries_module.LAST_TRIES + 1)
    assert clock.now - 1000.0 <= longest


def test_after_an_upgrade_the_new_version_reaches_its_own_server(
    tries: Tries, servers: FakeServers, clock: Clock
) -> None:
    servers.is_replaced = True
    assert _tried_until_over(tries, clock, lambda _: False) == 0.0
    assert (servers.asked, tries.succeed()) == ([SUCCESSOR], None)


def test_a_server_that_ends_too_often_is_left_alone_and_looked_for_later(
    tries: Tries, servers: FakeServers, clock: Clock
) -> None:
    for _ in range(MOST_ENDS - 1):
        assert _tried_until_over(tries, clock, lambda _: False) == 0.0
        assert tries.kind == SHARED
    tries.next_server()
    assert tries.kind == ALONE
    first = tries.succeed()
    assert first is not None
    assert ALONE_SECONDS <= first <= 2 * ALONE_SECONDS
    assert tries.rejoin_shared() is None
    servers.is_ready = True
    assert tries.rejoin_shared() == ("socket", "socket")
    assert tries.succeed() is None


def test_who_is_alone_again_and_again_looks_less_often(tries: Tries, servers: FakeServers, clock: Clock) -> None:
    servers.problem = Hangs("no answer")
    waits: list[float] = []
    for _ in range(12):
        tries.next_server()
        waits.append(tries.succeed() or 0.0)
        clock.now += 100.0
    assert waits[4] > 4 * waits[0]
    assert max(waits) <= 2 * tries_module.LONGEST_ALONE
