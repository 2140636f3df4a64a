"""Every request over HTTP has an id, which its answer, its log and its reply carry."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest
from fastmcp import FastMCP
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from onetool_team.http.asgi import REQUEST_ID, Receive, Scope, Send
from onetool_team.http.bearer import Bearer
from onetool_team.http.request_ids import RequestIds
from onetool_team.identity import Identity
from ot.log_span import SpanMessage
from ot.logs import BatchedHandler, current_principal, current_request, json_line, text_line

MADE = re.compile(r"[0-9a-f]{32}")


async def answer(request: Request) -> PlainTextResponse:
    """Say by which id the request is known inside."""
    same = current_request.get() == request.scope[REQUEST_ID]
    status = int(request.query_params.get("status", "200"))
    return PlainTextResponse(current_request.get() if same else "two ids", status, {"X-Request-Id": "of-the-app"})


@pytest.fixture
def statuses() -> list[int]:
    """The statuses of all answers."""
    return []


@pytest.fixture
def client(statuses: list[int]) -> TestClient:
    """A client of an application below the layer."""
    return TestClient(RequestIds(Starlette(routes=[Route("/", answer)]), statuses.append))


@pytest.mark.parametrize("given", ["a", "Root=1-67891233-abcdef012345678912345678", "x" * 128, "a.b:c+d/e@f-g="])
def test_an_id_that_was_sent_is_kept_and_returned_once(client: TestClient, given: str) -> None:
    reply = client.get("/", headers={"X-Request-Id": given})
    assert reply.text == given
    assert reply.headers.get_list("x-request-id") == [given]


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", 'a"b', "a\tb", "a\x1b[31mb", "a%0ab", "é"])
def test_a_malformed_id_is_replaced(client: TestClient, given: str) -> None:
    reply = client.get("/", headers=[(b"X-Request-Id", given.encode("latin-1"))])
    assert MADE.fullmatch(reply.text)
    assert reply.headers["x-request-id"] == reply.text


def test_of_two_ids_neither_is_believed(client: TestClient) -> None:
    reply = client.get("/", headers=[("X-Request-Id", "one"), ("X-Request-Id", "two")])
    assert MADE.fullmatch(reply.text)


def test_a_request_without_an_id_gets_one_of_its_own(client: TestClient) -> None:
    assert len({client.get("/").text for _ in range(5)}) == 5
    assert current_request.get() == ""


def test_the_status_of_every_answer_is_told(client: TestClient, statuses: list[int]) -> None:
    client.get("/?status=429")
    client.get("/nowhere")
    assert statuses == [429, 404]


def test_every_log_line_of_a_request_carries_its_id() -> None:
    written: list[str] = []
    logger = logging.Logger("ot.test")
    for line in (json_line, text_line):
        logger.addHandler(BatchedHandler(written.append, line, str, 0.001))
    token = current_request.set("r-1")
    try:
        logger.info("said %s", "something")
        logger.handle(
            logging.LogRecord("ot.test", logging.INFO, "", 0, SpanMessage("tool.call", 0.1, "", "", {}), None, None)
        )
    finally:
        current_request.reset(token)
    logger.info("afterwards")
    for handler in logger.handlers:
        handler.close()
    as_json = [json.loads(line) for text in written for line in text.splitlines() if line.startswith("{")]
    assert [line.get("request") for line in as_json] == ["r-1", "r-1", None]
    as_text = [line for text in written for line in text.splitlines() if not line.startswith("{")]
    assert [line.endswith(" request=r-1") for line in as_text] == [True, True, False]


class KnowsEveryone:
    """Takes every token for the name of whoever shows it."""

    async def identify(self, token: str) -> Identity:
        return Identity(f"token|{token}", token)

    async def aclose(self) -> None: ...


def test_a_tool_of_the_protocols_server_runs_under_the_id_and_the_principal_of_its_request() -> None:
    server = FastMCP("names")

    @server.tool
    def which() -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return f"{current_request.get()} {current_principal.get()}"

    asked: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "which"}}
    headers = {"Accept": "application/json, text/event-stream", "X-Request-Id": "r-2", "Authorization": "Bearer ann"}
    app = server.http_app(stateless_http=True, json_response=True)
    guarded = Bearer(app, KnowsEveryone(), lambda refused: "Bearer")

    async def edge(scope: Scope, receive: Receive, send: Send) -> None:
        await (guarded if scope["type"] == "http" else app)(scope, receive, send)

    with TestClient(RequestIds(edge), base_url="http://127.0.0.1") as client:
        reply = client.post("/mcp", json=asked, headers=headers)
    assert reply.json()["result"]["content"][0]["text"] == "r-2 token|ann"
