"""Faults of the area ``mcp-stdio``: whatever a client sends or leaves unread."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from faults.faults_corpus import fault
from faults.watched import SERVER, Place, Watched, peak_growth_mb
from mcp_wire import WireReply
from pace import PATIENCE, within

Fault = dict[str, Any]
CALLS = 10_000


def call(id: str, command: str) -> bytes:
    """Return a tools/call as a line; below 4,096 bytes a pipe takes it whole or not at all."""
    params = {"name": "run", "arguments": {"command": command}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def send_until_paused(server: Watched) -> int:
    """Send calls and return how many of them the server took before it paused."""
    for n in range(CALLS):
        try:
            server.wire.send_raw(call(f"held-{n}", f"'{n}-' + 'x' * 1000"), timeout=2)
        except TimeoutError:
            return n
    return CALLS


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Watched]:
    """A server in which hundreds of runs may wait for their turn."""
    config = "engines: {exact: {queue_seconds: 60}}\nsnippets: {hello: {body: '1'}}\nlogs: {level: WARNING}\n"
    with Watched.started(tmp_path, config, crowd=70) as watched:
        yield watched


@fault("M01")
def test_a_client_that_does_not_read_is_not_asked_for_more(patient: Watched, fault: Fault) -> None:
    taken: list[int] = []
    patient.wire.hold_reading()
    growth = peak_growth_mb(patient.wire, lambda: taken.append(send_until_paused(patient)))
    assert taken[0] < CALLS, "calls are not paused"
    assert growth < 64
    patient.wire.resume_reading()
    for n in range(taken[0]):
        assert patient.wire.wait(f"held-{n}").text.startswith(f"{n}-")
    patient.survive(lambda: None)


@fault("M01")
def test_the_server_ends_with_a_client_that_never_read(fault: Fault, tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    with subprocess.Popen(
        SERVER, cwd=place.cwd, env=place.environment(), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(b"not JSON, and answered once the server has started\n")
        assert select.select([server.stdout], [], [], PATIENCE)[0]
        os.set_blocking(server.stdin.fileno(), False)
        while select.select([], [server.stdin], [], 2)[1]:  # until it takes no more
            server.stdin.write(b"not JSON, and answered\n" * 100)
        server.stdin.close()
        server.stdout.close()
        with within(5):
            assert 0 == server.wait(PATIENCE)


@fault("M02")
@pytest.mark.parametrize("command", [b"\xff\xfe", b"'\xc3'", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
def test_a_request_that_is_not_utf_8_is_refused_and_the_server_lives(
    server: Watched, fault: Fault, command: bytes
) -> None:
    def send() -> dict[str, Any]:
        seen = len(refusals(server))
        server.wire.send_raw(call("utf-8", "COMMAND").replace(b"COMMAND", command))
        server.wire.ping()
        return refusals(server)[seen].error

    assert server.survive(send)["code"] in (-32700, -32602)
    assert "utf-8" not in server.wire.answers


def refusals(server: Watched) -> list[WireReply]:
    """Return the errors that answer no request in particular."""
    return server.wire.answers.get(None, [])


@fault("M03")
def test_an_id_that_is_still_in_flight_is_refused_and_the_first_call_answered(server: Watched, fault: Fault) -> None:
    server.wire.send_raw(call("dup", "slow.wait(seconds=0.3, nonce='first')"))
    server.wire.send_raw(call("dup", "'second'"))
    server.wire.wait("dup", nth=1)
    refusal, answer = server.wire.answers.pop("dup")
    assert -32600 == refusal.error["code"]
    assert "first" == answer.text
    server.survive(lambda: None)


@fault("M03")
@pytest.mark.parametrize("id", ["text", "1", "", "\u2028", "a" * 1000])
def test_an_id_may_be_used_again_once_it_is_answered(server: Watched, fault: Fault, id: str) -> None:
    for n in range(3):
        server.wire.send_raw(call(id, f"'{n}'"))
        assert str(n) == server.wire.wait(id).text
        server.wire.answers.pop(id)
    server.survive(lambda: None)


@fault("M03")
def test_an_id_may_be_used_again_once_it_is_cancelled(server: Watched, fault: Fault) -> None:
    def again() -> None:
        server.wire.send_raw(call("again", "while True: pass"))
        server.wire.cancel("again")
        server.wire.send_raw(call("again", "'second'"))
        assert "second" == server.wire.wait("again").text
        server.wire.answers.pop("again")

    server.survive(again)
