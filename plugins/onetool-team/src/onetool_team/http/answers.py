"""Answers that we give ourselves: a failure says what it is and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

from onetool_team.http.asgi import REQUEST_ID, Headers, Scope, Send

CODE = -32000
"""JSON-RPC's code for an error of the server's own kind: MCP clients show the message of such a body."""


async def send_json(send: Send, status: int, content: Mapping[str, Any], headers: Headers | None = None) -> None:
    """Answer with *content*."""
    body = orjson.dumps(content)
    length = (b"content-length", str(len(body)).encode())
    sent = [(b"content-type", b"application/json"), length, (b"cache-control", b"no-store"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def send_failure(
    scope: Scope, send: Send, status: HTTPStatus, message: str, headers: Headers | None = None, *, begun: bool = False
) -> None:
    """Answer that the request failed; *message* says what is wrong and what to do, *begun* that some of it was done."""
    await send_json(send, status, failure(message, status, scope.get(REQUEST_ID, ""), begun=begun), headers)


def failure(message: str, status: HTTPStatus, request_id: str = "", *, begun: bool = False) -> dict[str, Any]:
    """Return the body of a failure: a JSON-RPC error, which MCP clients read at any status."""
    # A request that was not begun may be sent to another host.
    data: dict[str, Any] = {"status": status.value, "error": status.phrase, "begun": begun}
    data |= {"request_id": request_id} if request_id else {}
    return {"jsonrpc": "2.0", "id": None, "error": {"code": CODE, "message": message, "data": data}}
