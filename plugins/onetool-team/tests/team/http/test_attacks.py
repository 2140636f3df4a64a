"""Requests that mean harm, sent as bytes to a real server: each is refused, and the server goes on answering."""

from __future__ import annotations

import contextlib
import json
import socket
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass

import pytest

from http_server import ACCEPT, CONFIG, META, MODERN, HttpServer, call, text_of
from pace import PATIENCE

HTTP = "http: {request_seconds: 1, body_bytes: 65536, connections: 12}\n"
BODY = json.dumps(call("'reached'")).encode()
CLOSED = 0
"""In place of a status: the connection ends without an answer."""


@dataclass(frozen=True)
class Attack:
    """What is sent, what it may be answered with, and whether the sender then keeps the connection open, silent."""

    sent: bytes
    answers: tuple[int, ...]
    silent: bool = False


def request(
    *headers: str,
    line: str = "POST /mcp HTTP/1.1",
    host: str = "localhost",
    body: bytes = BODY,
    leave_out: tuple[str, ...] = (),
    length: str | None = None,
) -> bytes:
    """Return a request that is good but for what is asked for; ``TOKEN`` stands for the token."""
    given = {
        "Host": host,
        "Authorization": "Bearer TOKEN",
        "Accept": ACCEPT,
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "run",
        "Content-Length": str(len(body)) if length is None else length,
    }
    lines = [line, *(f"{name}: {value}" for name, value in given.items() if name not in leave_out), *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end


def rpc(**changes: object) -> bytes:
    return json.dumps({**call("'reached'"), **changes}).encode()


NO_LENGTH = ("Content-Length",)
CHUNKED = "Transfer-Encoding: chunked"
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}).encode()

ATTACKS = {
    # Host and Origin
    "a host that is not ours": Attack(request(host="evil.example"), (421,)),
    "a name that leads to loopback": Attack(request(host="127.0.0.1.nip.io"), (421,)),
    "a host that begins as ours": Attack(request(host="localhost.evil.example"), (421,)),
    "a host that ends as ours": Attack(request(host="evil-localhost"), (421,)),
    "a user before the host": Attack(request(host="localhost@evil.example"), (421,)),
    "a host with a path": Attack(request(host="localhost/evil.example"), (421,)),
    "a port that is not a number": Attack(request(host="localhost:evil"), (421,)),
    "all interfaces as a host": Attack(request(host="0.0.0.0"), (421,)),
    "no host": Attack(request(leave_out=("Host",)), (400, 421)),
    "an empty host": Attack(request(host=""), (421,)),
    "two hosts": Attack(request("Host: evil.example"), (421,)),
    "an address with another host": Attack(request(line="POST http://evil.example/mcp HTTP/1.1"), (400,)),
    "a page of another origin": Attack(request("Origin: https://evil.example"), (403,)),
    "a page that hides its origin": Attack(request("Origin: null"), (403,)),
    "a page of another port": Attack(request("Origin: http://localhost:3000"), (403,)),
    "an origin that begins as ours": Attack(request("Origin: http://localhost.evil.example"), (403,)),
    "two origins": Attack(request("Origin: http://localhost", "Origin: https://evil.example"), (403,)),
    # Tokens
    "no token": Attack(request(leave_out=("Authorization",)), (401,)),
    "another token": Attack(request("Authorization: Bearer wrong", leave_out=("Authorization",)), (401,)),
    "an empty token": Attack(request("Authorization: Bearer ", leave_out=("Authorization",)), (401,)),
    "two tokens": Attack(request("Authorization: Bearer wrong"), (401,)),
    "a token of another kind": Attack(request("Authorization: Basic TOKEN", leave_out=("Authorization",)), (401,)),
    "a token that is not text": Attack(request("Authorization: Bearer \xff\xfe", leave_out=("Authorization",)), (401,)),
    "a token in the address": Attack(
        request(line="POST /mcp?access_token=TOKEN HTTP/1.1", leave_out=("Authorization",)), (401,)
    ),
    # Smuggling
    "a length and chunks": Attack(request(CHUNKED, body=chunked(BODY)), (400,)),
    "two lengths": Attack(request("Content-Length: 5"), (400,)),
    "two lengths in one header": Attack(request(length=f"{len(BODY)}, 5"), (400,)),
    "a negative length": Attack(request(length="-1"), (400,)),
    "a length with a sign": Attack(request(length="+5"), (400,)),
    "a length beyond all numbers": Attack(request(length="9" * 40), (400, 413)),
    "chunks that are not the last coding": Attack(
        request("Transfer-Encoding: chunked, identity", body=chunked(BODY), leave_out=NO_LENGTH), (400,)
    ),
    "a coding that only looks like chunks": Attack(
        request("Transfer-Encoding: xchunked", body=chunked(BODY), leave_out=NO_LENGTH), (400,)
    ),
    "a space before the colon": Attack(
        request("Transfer-Encoding : chunked", body=chunked(BODY), leave_out=NO_LENGTH), (400,)
    ),
    "a header on two lines": Attack(request("X-Folded: a\r\n b"), (400,)),
    "a zero byte in a header": Attack(request("X-Zero: a\0b"), (400,)),
    "a chunk size beyond all numbers": Attack(
        request(CHUNKED, body=b"fffffffffffffffff\r\nx\r\n0\r\n\r\n", leave_out=NO_LENGTH), (400,)
    ),
    "a chunk size with a sign": Attack(request(CHUNKED, body=b"-1\r\nx\r\n", leave_out=NO_LENGTH), (400,)),
    "a second request in the body": Attack(
        request(body=b"", length="0") + b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n", (400, 421)
    ),
    # Sizes
    "a large header": Attack(request("X-Large: " + "a" * 40_000), (431,)),
    "a large header that never ends": Attack(b"POST /mcp HTTP/1.1\r\nX-Large: " + b"a" * 2_000_000, (431, CLOSED)),
    "many headers": Attack(request(*(f"X-{n}: 1" for n in range(200))), (431,)),
    "a long address": Attack(request(line=f"POST /mcp?{'a' * 40_000} HTTP/1.1"), (431,)),
    "a long method": Attack(request(line=f"{'A' * 40_000} /mcp HTTP/1.1"), (400, 431)),
    "a large body": Attack(request(body=rpc(more="a" * 70_000)), (413,)),
    "a large body that is only announced": Attack(request(body=b"", length="70000"), (413,)),
    "a large body in chunks": Attack(request(CHUNKED, body=chunked(*[b" " * 8000] * 10), leave_out=NO_LENGTH), (413,)),
    "a large body after a question": Attack(request("Expect: 100-continue", body=b"", length="70000"), (413,)),
    # What is not MCP
    "a body that is not JSON": Attack(request(body=b"{"), (400,)),
    "a body that is not text": Attack(request(body=b"\xff\xfe\0"), (400,)),
    "no body": Attack(request(body=b""), (400,)),
    "JSON nested beyond reading": Attack(request(body=b"[" * 60_000), (400,)),
    "a number beyond reading": Attack(request(body=b'{"id": ' + b"9" * 60_000 + b"}"), (400,)),
    "several requests in one": Attack(request(body=b"[" + BODY + b"," + BODY + b"]"), (400,)),
    "a malformed id": Attack(request(body=rpc(id={"a": 1})), (400,)),
    "a method that does not exist": Attack(request(body=rpc(method="tools/burn")), (400, 404)),
    "headers that contradict the body": Attack(request(body=LIST), (400,)),
    "a protocol of the future": Attack(
        request("MCP-Protocol-Version: 2099-01-01", leave_out=("MCP-Protocol-Version",)), (400,)
    ),
    "a form": Attack(
        request("Content-Type: application/x-www-form-urlencoded", leave_out=("Content-Type",)), (400, 415)
    ),
    "plain text, as pages may send it": Attack(
        request("Content-Type: text/plain", leave_out=("Content-Type",)), (400, 415)
    ),
    "an answer that nobody can read": Attack(request("Accept: image/png", leave_out=("Accept",)), (406,)),
    # Methods and paths
    **{
        f"{method} of /mcp": Attack(request(line=f"{method} /mcp HTTP/1.1", body=b""), (405,))
        for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE")
    },
    "a tunnel": Attack(request(line="CONNECT evil.example:443 HTTP/1.1", body=b""), (400,)),
    "a method that does not exist in HTTP": Attack(request(line="BURN /mcp HTTP/1.1"), (400,)),
    "another path": Attack(request(line="POST /admin HTTP/1.1"), (404,)),
    "a path that leads round": Attack(request(line="POST /x/../mcp HTTP/1.1"), (404,)),
    "a path in disguise": Attack(request(line="POST /%6dcp HTTP/1.1"), (404,)),
    "a path with a zero byte": Attack(request(line="POST /mcp%00 HTTP/1.1"), (404,)),
    "a path that is not text": Attack(request(line="POST /mcp\xff HTTP/1.1"), (400, 404)),
    # What is not HTTP/1.1
    "the first bytes of TLS": Attack(bytes.fromhex("16030100a5010000a10303") + bytes(160), (400,)),
    "the first bytes of HTTP/2": Attack(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    "a version of the future": Attack(request(line="POST /mcp HTTP/9.9"), (400,)),
    "no version": Attack(b"GET /mcp\r\n\r\n", (400, 405)),
    "a websocket": Attack(
        request("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", line="GET /mcp HTTP/1.1",
                body=b"", leave_out=NO_LENGTH), (400, 405),
    ),
    "only line feeds": Attack(request().replace(b"\r\n", b"\n", 3), (400,)),
    "many requests at once": Attack(request(line="GET /healthz HTTP/1.1", body=b"") * 500, (200, 400, CLOSED)),
    # Slowness
    "nothing": Attack(b"", (CLOSED,), silent=True),
    "half a head": Attack(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow", (408,), silent=True),
    "half a body": Attack(request()[:-5], (408,), silent=True),
    "half a chunk": Attack(
        request(CHUNKED, body=chunked(BODY[:10], end=b"50\r\nx"), leave_out=NO_LENGTH), (408,), silent=True
    ),
    "half a body without a token": Attack(request(leave_out=("Authorization",))[:-5], (401,), silent=True),
    "empty lines": Attack(b"\r\n" * 1000, (CLOSED, 400, 408), silent=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpServer]:
    with HttpServer.start(tmp_path_factory.mktemp("attacked"), CONFIG + HTTP) as started:
        yield started
        lines = started.stderr_text().split("\n")[:-1]  # the last one may not be whole yet
        assert "Traceback" not in "".join(lines)
        loggers = Counter(json.loads(line)["logger"] for line in lines)  # a line of any other form fails here
        assert loggers["uvicorn.error"]


def heard(server: HttpServer, attack: Attack) -> bytes:
    """Return all that the server says until the connection ends, whoever ends it."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        with contextlib.suppress(OSError):  # it may refuse before it has heard everything
            connection.sendall(attack.sent.replace(b"TOKEN", server.token.encode()))
            if not attack.silent:
                connection.shutdown(socket.SHUT_WR)
        parts: list[bytes] = []
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_with_a_reason_and_the_server_goes_on(server: HttpServer, name: str) -> None:
    attack = ATTACKS[name]
    answer = heard(server, attack)
    status = int(answer.split()[1]) if answer else CLOSED
    assert status in attack.answers, answer[:500]
    assert b"reached" not in answer
    if status >= 400 and status != 406:
        assert b"\r\n\r\n" in answer and answer.partition(b"\r\n\r\n")[2], answer
    assert "still here" == text_of(server.run("'still here'"))


def test_connections_that_send_no_whole_request_keep_out_neither_probes_nor_users(server: HttpServer) -> None:
    half = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
    with contextlib.ExitStack() as crowd:
        held = [crowd.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) for _ in range(60)]
        for connection in held:
            with contextlib.suppress(ConnectionError):
                connection.sendall(half)
        for path in ("/healthz", "/readyz"):
            assert heard(server, Attack(request(line=f"GET {path} HTTP/1.1", body=b""), (200,))).split()[1] == b"200"
        assert "heard" == text_of(server.run("'heard'"))
        assert b"" == _last_words(held[0])


def _last_words(connection: socket.socket) -> bytes:
    with contextlib.suppress(ConnectionError):
        return connection.recv(1000)
    return b""
