"""Which calls over HTTP are answered in one piece, and that they are answered as the library would."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request

from onetool_team.http.single_exchange import SingleCall

CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run"}}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def read(message: object, **headers: str) -> SingleCall | None:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    given = {**HEADERS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in given.items()]
    return SingleCall.read(Request({"type": "http", "headers": raw}), body)


def test_a_plain_call_is_answered_in_one_piece() -> None:
    assert SingleCall(1, {"name": "run"}, "2025-03-26") == read(CALL)
    assert SingleCall("a", {"name": "run"}, "2025-11-25") == read(
        {**CALL, "id": "a"}, mcp_protocol_version="2025-11-25", content_type="application/json; charset=utf-8"
    )


@pytest.mark.parametrize(
    "message",
    [
        {**CALL, "params": {"name": "run", "_meta": {"progressToken": 1}}},
        {**CALL, "method": "initialize"},
        {**CALL, "jsonrpc": "1.0"},
        {**CALL, "id": None},
        {**CALL, "id": True},
        {**CALL, "id": 1.5},
        {**CALL, "params": [1]},
        {**CALL, "result": {}},
        {key: CALL[key] for key in CALL if key != "id"},
        [CALL],
        b"{",
        b"\xff",
    ],
)
def test_everything_else_is_left_to_the_library(message: object) -> None:
    assert read(message) is None


@pytest.mark.parametrize("headers", [{"accept": "text/event-stream"}, {"content_type": "text/plain"}])
def test_what_the_library_would_refuse_is_left_to_it(headers: dict[str, str]) -> None:
    assert read(CALL, **headers) is None
