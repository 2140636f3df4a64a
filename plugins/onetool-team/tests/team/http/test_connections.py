"""How many connections there may be, and which is closed where there are too many."""

from __future__ import annotations

import pytest

from onetool_team.http.app import Edge
from onetool_team.http.asgi import AsgiApp, Message, Receive, Scope, Send
from onetool_team.http.connections import SPARE, Connections
from onetool_team.http.health import Readiness
from onetool_team.identity import Identity
from onetool_team.settings import Http

STRANGER, OTHER, BALANCER = "8.8.4.4", "9.9.9.9", "10.0.0.7"


class Held:
    """A connection that knows whether it was closed."""

    is_closed = False

    def abort(self) -> None:
        """Close it."""
        self.is_closed = True


def enter(crowd: Connections, number: int, address: str = BALANCER, *, answered: bool = False) -> list[Held]:
    found = [Held() for _ in range(number)]
    for one in found:
        crowd.enter(one, address)
        if answered:
            crowd.hear(one)
    return found


def closed(held: list[Held]) -> list[int]:
    return [number for number, one in enumerate(held) if one.is_closed]


def test_the_one_that_has_waited_longest_is_closed_for_a_new_one() -> None:
    crowd = Connections(4)
    held = enter(crowd, 4 + SPARE)
    crowd.hear(held[0])
    crowd.wait(held[0])
    assert closed(held) == []
    new = enter(crowd, 2)
    assert (closed(held), closed(new)) == ([1, 2], [])


def test_where_many_addresses_fill_the_server_the_one_that_has_waited_longest_is_closed() -> None:
    crowd = Connections(4)
    held = [one for number in range(4 + SPARE) for one in enter(crowd, 1, f"9.9.{number}.9")]
    assert closed(held) == []
    new = enter(crowd, 1, "9.8.7.6") + enter(crowd, 1, "9.8.7.5")
    assert (closed(held), closed(new)) == ([0, 1], [])


def test_what_is_being_answered_is_never_closed_and_some_are_always_heard_beside_it() -> None:
    crowd = Connections(4)
    answered = enter(crowd, 4, answered=True)
    newcomers = enter(crowd, SPARE + 3)
    assert (closed(answered), closed(newcomers)) == ([], [0, 1, 2])
    assert crowd.answered == 4


def test_a_connection_that_has_gone_makes_room() -> None:
    crowd = Connections(4)
    held = enter(crowd, 4 + SPARE)
    for one in held[5:]:
        crowd.leave(one)
    assert closed(enter(crowd, SPARE - 1) + held) == []


def test_one_public_address_may_have_a_quarter_and_closes_only_its_own() -> None:
    crowd = Connections(40)
    others, flood = enter(crowd, 3, OTHER), enter(crowd, 15, STRANGER)
    assert (closed(others), closed(flood)) == ([], [0, 1, 2, 3, 4])


def test_where_all_of_an_address_are_being_answered_its_next_is_closed_at_once() -> None:
    crowd = Connections(40)
    answered, more = enter(crowd, 10, STRANGER, answered=True), enter(crowd, 1, STRANGER)
    assert (closed(answered), closed(more), crowd.answered) == ([], [0], 10)


def test_a_private_address_may_be_a_balancer_and_is_bounded_only_by_a_setting() -> None:
    for address in (BALANCER, "127.0.0.1", "::1", "fd00::1", "::ffff:10.0.0.7", ""):
        assert closed(enter(Connections(40), 40 + SPARE, address)) == []
    assert closed(enter(Connections(40, 7), 9)) == [0, 1]


def test_addresses_of_one_network_and_of_one_machine_in_two_forms_count_together() -> None:
    crowd = Connections(40)
    flood = [one for number in range(11) for one in enter(crowd, 1, f"2606:4700:0:1::{number:x}")]
    assert closed(flood) == [0]
    crowd = Connections(8)
    assert closed(enter(crowd, 2, "8.8.8.8") + enter(crowd, 1, "::ffff:8.8.8.8")) == [0]


@pytest.mark.anyio
async def test_a_server_that_answers_as_many_as_it_may_refuses_others_and_still_answers_probes() -> None:
    readiness = Readiness()
    readiness.ready("portable")
    edge = Edge(Http(connections=12), Nobody(), readiness, lambda: 13).around(_never)
    statuses = {path: await _status(edge, path) for path in ("/healthz", "/readyz", "/mcp", "/oauth/start", "/none")}
    assert statuses == {"/healthz": 200, "/readyz": 200, "/mcp": 503, "/oauth/start": 503, "/none": 503}


class Nobody:
    """Knows nobody."""

    async def identify(self, token: str) -> Identity:
        raise AssertionError(token)

    async def aclose(self) -> None:
        """Nothing is held."""


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError(scope)


async def _status(edge: AsgiApp, path: str) -> int:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "raw_path": path.encode(), "query_string": b"", "headers": []}
    await edge(scope, receive, send)
    return sent[0]["status"]
