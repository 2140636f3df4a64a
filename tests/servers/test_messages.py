"""A server's message is bounded before anything is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from ot.servers.messages import MAX_ITEMS, MAX_PARTS, Allowance, read_message
from ot.values.parts import Unread

MANY = [0] * (MAX_PARTS + 1)
BLOCK = {"type": "text", "text": "x" * 40}
COMPACT = (",", ":")


def _line(separators: tuple[str, str] = COMPACT, **message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=separators).encode()


def test_a_message_of_ordinary_size_is_read() -> None:
    assert isinstance(read_message(_line(id=1, result={"content": []})), JSONRPCResponse)
    assert isinstance(read_message(_line(id="a", method="ping")), JSONRPCRequest)
    assert isinstance(read_message(_line(method="notifications/message")), JSONRPCNotification)


@pytest.mark.parametrize("separators", [COMPACT, (", ", ": ")])
@pytest.mark.parametrize("id", [7, "seven"])
@pytest.mark.parametrize("result", [{"structuredContent": {"result": MANY}}, {"content": [BLOCK] * (MAX_ITEMS + 1)}])
def test_a_reply_that_is_too_large_is_an_error_that_carries_its_bytes(
    separators: tuple[str, str], id: Any, result: Any
) -> None:
    last = json.dumps({"jsonrpc": "2.0", "result": result, "id": id}, separators=separators).encode()
    for line in (_line(separators, id=id, result=result), last):
        message = read_message(line)
        assert isinstance(message, JSONRPCError)
        assert message.id == id
        assert isinstance(message.error.data, Unread)
        assert json.loads(message.error.data.data) == result


@pytest.mark.parametrize(
    "line",
    [
        b"junk",
        b"[1,2]",
        _line(method="notifications/message", params={"data": MANY}),
        _line(id=1, method="elicitation/create", params={"message": "x" * 200_000}),
        _line(method="notifications/message", params={"data": "x" * 200_000}),
        b'{"jsonrpc":"2.0","result":{"a":' + json.dumps(MANY).encode() + b'},"other":1}',
    ],
)
def test_what_a_server_has_no_reason_to_send_is_no_message(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_message(line)


def test_a_large_meta_is_left_out_and_the_value_stays() -> None:
    kept: dict[str, Any] = {"content": [], "structuredContent": {"a": 1}}
    message = read_message(_line(id=1, result={**kept, "_meta": {"m": [0] * 50_000}}))
    assert isinstance(message, JSONRPCResponse)
    assert message.result == kept


def test_a_server_may_say_so_much_of_its_own_accord_and_no_more() -> None:
    allowance = Allowance(3)
    assert [allowance.takes() for _ in range(5)] == [True, True, True, False, False]


def test_a_reply_that_is_nested_too_deeply_fails_its_call_at_once() -> None:
    nest = b"[" * 5000 + b"]" * 5000
    message = read_message(b'{"jsonrpc":"2.0","id":5,"result":{"structuredContent":{"a":' + nest + b"}}}")
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.data) == (5, None)
