"""Who signs the requests of a server: what it does to one request is that request's alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from ot.errors import CannotAsk, ServerUnavailable
from ot.servers.call_trace import CallTrace, current_trace
from ot.servers.failure_words import MAX_TEXT
from ot.servers.failures import Lost, call_failure
from ot.servers.http_client import ServerClient
from ot.servers.messages import StrayOutput
from ot.servers.place import ClientRoots
from ot.servers.reply_faults import Refused
from ot.servers.session import LiveSession
from servers.desk import http_spec
from servers.raw_http_server import raw_server

pytestmark = pytest.mark.anyio


class Signing(httpx2.Auth):
    """Signs requests, or fails while it does."""

    fault: Exception | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self.fault:
            raise self.fault
        request.headers["Authorization"] = "Bearer token"
        yield request


def buying(what: str) -> dict[str, Any]:
    """Return a call."""
    params = {"name": "buy", "arguments": {"what": what}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@pytest.mark.parametrize("fault", [Refused("log in first"), CannotAsk("log in first"), OSError("log in first")])
async def test_what_goes_wrong_while_a_request_is_signed_is_that_requests_alone(fault: Exception):
    signing, trace = Signing(), CallTrace()
    async with raw_server() as (url, raw), ServerClient(http_spec(url), signing) as client:
        current_trace.set(trace)
        signing.fault = fault
        refused = await client.post(url, json=buying("tea"))
        assert "log in first" in refused.json()["error"]["message"]
        assert (trace.fault, trace.sent, raw.seen) == (fault, False, [])
        signing.fault = None
        assert (await client.post(url, json=buying("milk"))).json()["id"] == 7
        assert raw.calls()[0].headers["authorization"] == "Bearer token"
        assert (trace.fault, trace.sent, raw.effects) == (None, True, ["milk"])


async def test_an_error_of_who_signs_reaches_the_program_as_it_is():
    live = LiveSession(http_spec("http://127.0.0.1:9/mcp"), StrayOutput("s"), lambda: None, "auto", ClientRoots())
    wanted = CannotAsk("log in first")
    assert call_failure(RuntimeError(), "web.buy", CallTrace(fault=wanted, sent=True), live) is wanted
    found = call_failure(RuntimeError(), "web.buy", CallTrace(fault=Refused("log in first"), sent=True), live)
    assert isinstance(found, ServerUnavailable)
    assert not found.unknown


@pytest.mark.parametrize("sent", [True, False])
async def test_a_secret_where_a_long_failure_is_cut_leaves_no_part_of_itself(sent: bool):
    secret = "hush-0123456789-abcdefghij-0123456789"
    spec = http_spec("http://127.0.0.1:9/mcp", secrets=(("KEY", secret),))
    live = LiveSession(spec, StrayOutput("s"), lambda: None, "auto", ClientRoots())
    fault = OSError("x" * (MAX_TEXT - 20) + secret + "y" * MAX_TEXT)
    found = call_failure(RuntimeError(), "web.buy", CallTrace(fault=fault, sent=sent), live)
    assert isinstance(found, ServerUnavailable | Lost)
    assert "hush" not in found.why
    assert MAX_TEXT / 2 < len(found.why) <= MAX_TEXT
