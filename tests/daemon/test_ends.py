"""However the shared server ends, clients go on; its own version is imported before another is installed."""

from __future__ import annotations

import ast
import os
import signal
from importlib import import_module
from pathlib import Path

import pytest

import ot
from mcp_wire import ServerGone, WireServer
from ot.daemon.serving import LAZY
from pace import wait_while, within
from shared_bed import BUSY, SharedBed, is_alone, wait_until_connected, wait_until_gone

LOST = -32000
BIG = "'x' * 300_000"
LONG = "n = 0\nwhile n < 5_000_000:\n    n = n + 1\n'done'"


def _connected(user: SharedBed, count: int) -> None:
    wait_while(lambda: user.connections() != count and "the number of clients is another")


def _busy(user: SharedBed) -> None:
    """Return when a run is under way."""
    wait_while(lambda: not any(one["runs"] for one in user.control()["connections"]) and "nothing runs")


def _clean(client: WireServer) -> None:
    assert client.stdout_junk == []
    assert {number: len(answers) for number, answers in client.answers.items() if len(answers) > 1} == {}


# ---------------------------------------------------------------- the shared server is killed


def test_after_an_idle_server_was_killed_the_next_call_works(user: SharedBed) -> None:
    with user.client() as client:
        assert client.run("1 + 1").text == "2"
        killed = user.kill_daemon()
        assert client.run("2 + 2").text == "4"
        assert user.daemon() != killed
        assert not is_alone(client)
        _clean(client)


def test_every_call_that_was_open_gets_one_error_and_the_next_one_works(user: SharedBed) -> None:
    with user.client() as client:
        numbers = [client.send_run(BUSY) for _ in range(2)]
        _busy(user)
        user.kill_daemon()
        for number in numbers:
            said = client.wait(number)
            assert said.error["code"] == LOST
            assert "its effect is not known" in said.text
        assert client.run("1 + 1").text == "2"
        _clean(client)


def test_a_list_that_was_asked_for_when_the_server_died_is_asked_of_the_next_one(user: SharedBed) -> None:
    with user.client() as client:
        os.kill(user.daemon(), signal.SIGSTOP)
        number = client.send("tools/list")
        user.kill_daemon()
        assert [tool["name"] for tool in client.wait(number).result["tools"]] == ["run"]
        _clean(client)


def test_a_client_whose_greeting_was_cut_off_gets_one_from_the_next_server(user: SharedBed) -> None:
    with user.client() as first:
        first.run("1")
        with user.client(handshake=False) as client:
            wait_until_connected(user.socket(), 2)
            _connected(user, 2)
            os.kill(user.daemon(), signal.SIGSTOP)
            number = client.send(
                "initialize",
                {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
            )
            user.kill_daemon()
            assert client.wait(number).result["serverInfo"]["name"] == "onetool"
            client.notify("notifications/initialized")
            assert client.run("1 + 1").text == "2"
            _clean(client)


def test_a_client_whose_server_dies_in_the_handshake_gets_the_next_one(user: SharedBed) -> None:
    with user.client() as first:
        first.run("1")
        pid, socket = user.daemon(), user.socket()
        os.kill(pid, signal.SIGSTOP)
        with user.client(handshake=False) as client:
            wait_until_connected(socket, 2)
            os.kill(pid, signal.SIGKILL)
            client.initialize()
            assert client.run("1 + 1").text == "2"
            assert not is_alone(client)


def test_a_server_that_ends_three_times_in_a_minute_is_not_started_again(user: SharedBed) -> None:
    with user.client() as client:
        for count in range(2):
            assert client.run(f"{count} + 1").text == str(count + 1)
            user.kill_daemon()
        client.run("1")
        user.kill_daemon()
        assert client.run("3 + 1").text == "4"
        assert is_alone(client)
        assert user.daemons() == []
        _clean(client)


def test_no_broken_line_reaches_a_client_when_the_server_dies_between_large_answers(user: SharedBed) -> None:
    with user.client() as client:
        client.run(BIG)
        client.hold_reading()
        numbers = [client.send_run(BIG) for _ in range(8)]
        wait_until_connected(user.socket(), 1)
        os.kill(user.daemon(), signal.SIGKILL)
        client.resume_reading()
        for number in numbers:
            said = client.wait(number)
            assert said.error.get("code") == LOST or len(said.text) > 1000
        _clean(client)


# ---------------------------------------------------------------- the client, or its relay, is killed


@pytest.mark.parametrize("how", ["the relay is killed", "the client is killed"])
def test_a_run_of_a_client_that_has_gone_is_ended_and_others_go_on(user: SharedBed, how: str) -> None:
    with user.client() as other:
        client = user.client()
        client.send_run(BUSY)
        _busy(user)
        pid = user.daemon()
        if how == "the relay is killed":
            client.kill()
        else:
            client.close(0)  # its pipes close, as those of a process that was killed do
        _connected(user, 1)
        wait_while(lambda: any(one["runs"] for one in user.control()["connections"]) and "it still runs")
        assert other.run("1 + 1").text == "2"
        assert user.daemon() == pid


def test_a_relay_whose_input_is_closed_in_a_call_ends_at_once(user: SharedBed) -> None:
    with user.client() as other:
        client = user.client()
        client.send_run(BUSY)
        _busy(user)
        with within(2.0):
            assert client.close() == 0
        assert other.run("1 + 1").text == "2"


def test_the_server_outlives_a_client_that_kills_its_whole_tree(user: SharedBed) -> None:
    client = user.client()
    pid = user.daemon()
    assert pid not in client.children()
    assert client.kill() == -signal.SIGKILL
    with user.client() as other:
        assert other.run("1 + 1").text == "2"
        assert user.daemon() == pid


def test_a_relay_that_is_asked_to_end_passes_on_the_answers_that_are_open(user: SharedBed) -> None:
    client = user.client()
    number = client.send_run(LONG)
    _busy(user)
    os.kill(client.pid, signal.SIGTERM)
    assert client.wait(number).text == "done"
    with pytest.raises(ServerGone):
        client.wait("never asked")
    assert client.close() == 0
    wait_until_gone(client.pid)


SOURCE = Path(ot.__file__).parent
ELSEWHERE = {"cli", "daemon", "entry.py", "relay", "jail"}
"""Rooms whose imports a shared server does not meet: above it, or run from disk in another process."""


def _imported_in_functions(file: Path) -> set[str]:
    functions = (
        node
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    inside = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.ImportFrom))
    return {node.module for node in inside if node.module and node.module.startswith("ot.")}


def test_every_module_that_a_server_imports_late_is_known() -> None:
    files = [file for file in SOURCE.rglob("*.py") if ELSEWHERE.isdisjoint(file.relative_to(SOURCE).parts)]
    late = set[str]().union(*map(_imported_in_functions, files))
    assert late == set(LAZY)


def test_all_of_them_can_be_imported() -> None:
    assert [import_module(name).__name__ for name in LAZY] == list(LAZY)
