"""Which names a server answers to, and whose pages may call it."""

from __future__ import annotations

import pytest

from onetool_team.http.asgi import Message, Receive, Scope, Send
from onetool_team.http.host_origin import HostOrigin
from onetool_team.settings import Http

pytestmark = pytest.mark.anyio

SETTINGS = Http(
    public_url="https://Tools.example/base", hosts=("onetool.internal", "10.0.0.7"), origins=("https://chat.example",)
)


async def status(host: str, origin: str | None = None, settings: Http = SETTINGS) -> int:
    """Return what a request with these headers is answered with."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        raise AssertionError("nothing is read before the headers are good")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", host.encode())] + ([(b"origin", origin.encode())] if origin is not None else [])
    await HostOrigin(app, settings)({"type": "http", "headers": headers}, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "[::1]", "tools.example", "tools.example:443",
     "tools.example.", "onetool.internal:80", "10.0.0.7"],
)  # fmt: skip
async def test_loopback_names_and_those_of_the_operator_are_answered(host: str) -> None:
    assert 200 == await status(host)


@pytest.mark.parametrize("host", ["evil.example", "tools.example.evil.example", "10.0.0.70", "0x7f.1", "2130706433"])
async def test_any_other_name_is_not(host: str) -> None:
    assert 421 == await status(host)


async def test_without_settings_only_loopback_names_are_answered() -> None:
    assert [200, 421] == [await status(host, settings=Http()) for host in ("localhost", "tools.example")]


@pytest.mark.parametrize("origin", ["https://chat.example", "https://chat.example:443", "https://tools.example"])
async def test_pages_of_the_operators_origins_may_call(origin: str) -> None:
    assert 200 == await status("localhost", origin)


@pytest.mark.parametrize(
    "origin",
    ["http://chat.example", "https://chat.example:8443", "https://chat.example.evil.example", "https://a@chat.example",
     "null", "", "chat.example", "file://", "http://localhost"],
)  # fmt: skip
async def test_no_other_page_may(origin: str) -> None:
    assert 403 == await status("localhost", origin)
