"""What a line of a client means, and which lines are not read as a whole."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest

from ot.server.incoming_line import MAX_PARTS, NoMessage, outer_id, read_line

pytestmark = pytest.mark.anyio

MANY = [0] * (MAX_PARTS + 1)


def line(*members: str, params: Any) -> bytes:
    """Return a request as a line, its members in this order."""
    known: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    return json.dumps({name: known[name] for name in members}).encode()


@pytest.mark.parametrize(
    "members",
    [
        ("jsonrpc", "id", "method", "params"),
        ("id", "jsonrpc", "method", "params"),
        ("method", "params", "jsonrpc", "id"),
        ("method", "params", "id", "jsonrpc"),
    ],
)
async def test_a_message_of_too_many_parts_is_refused_under_its_own_id(members: tuple[str, ...]) -> None:
    found = await read_line(line(*members, params={"command": MANY, "id": 8}), alone=False)
    assert isinstance(found, NoMessage)
    assert (7, "150,000 parts") == (found.request_id, found.reason[-13:])


async def test_who_is_alone_may_send_as_many_parts_as_go_in() -> None:
    found = await read_line(line("jsonrpc", "id", "method", "params", params={"command": MANY}), alone=True)
    assert isinstance(found, types.JSONRPCRequest)


async def test_what_looks_like_parts_in_a_text_counts_as_one() -> None:
    params = {"command": ',[{\\"' * MAX_PARTS}
    found = await read_line(line("jsonrpc", "id", "method", "params", params=params), alone=False)
    assert isinstance(found, types.JSONRPCRequest)
    assert params == found.params


@pytest.mark.parametrize(
    "text",
    [
        b'{"method": "m", "params": {"id": 7}}',
        b'{"method": "m", "params": [{"jsonrpc": "2.0", "id": 7}]}',
        b'{"method": "m", "id": 7.5}',
        b'{"method": "m", "id": null}',
        b'{"method": "m, \\"id\\": 7}',
    ],
)
def test_an_id_that_is_not_the_message_s_own_is_not_taken_for_it(text: bytes) -> None:
    assert outer_id(text) is None
