"""onetool watch: what runs do, on a screen and as lines; there they are answered, cancelled and looked back at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mcp_wire import WireServer
from pace import PATIENCE, wait_while
from shared_bed import SharedBed, asked_bed, own_command
from terminal import Terminal, at_terminal

START = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
"""Starts a server as a client does: who runs the tests is then a person beside that client, and may answer."""
WAIT = "import time\nfor _ in range(3000):\n    time.sleep(0.01)"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
SIZE = {"COLUMNS": "120", "LINES": "30"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBed]:
    """The home of a user whose file.write asks first."""
    with asked_bed(tmp_path_factory.mktemp("watched"), "policy: {ask: [file.write]}\n") as made:
        yield made


@pytest.fixture(scope="module")
def client(house: SharedBed) -> Iterator[WireServer]:
    """A client of the shared server."""
    command = [sys.executable, "-c", START, *own_command("serve", "--shared")]
    with WireServer.start(command, cwd=house.cwd, env=house.environment(), warm=False, handshake=False) as started:
        started.initialize(2 * PATIENCE)
        yield started


@contextmanager
def watching(house: SharedBed, *options: str) -> Generator[Iterator[str]]:
    """Yield the lines of ``onetool watch`` without a terminal."""
    process = subprocess.Popen(
        own_command("watch", *options), cwd=house.cwd, env=house.environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout
        yield iter(process.stdout)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def until(lines: Iterator[str], words: str) -> list[str]:
    """Return the lines up to the first with *words*."""
    found: list[str] = []
    for line in lines:
        found.append(line)
        if words in line:
            return found
    raise AssertionError(found)


def press(terminal: Terminal, key: str) -> None:
    terminal.shown = ""
    os.write(terminal.screen, key.encode())


def test_each_event_is_a_json_object_on_a_line(house: SharedBed, client: WireServer) -> None:
    client.run("1 + 1")
    with watching(house, "--json") as lines:
        server = json.loads(until(lines, "server")[-1])
        assert (server["event"], server["pid"]) == ("server", house.daemon())
        reply = client.run("x = ot.version()\nprint('hello')\n[1, 2]")
        events = [json.loads(line) for line in until(lines, '"ended"')]
    assert {event["run"] for event in events} == {_run_of(reply.meta)}
    told: dict[str, Any] = {event["event"]: event for event in events}
    assert [event["event"] for event in events if event["event"] != "printed"] == ["run", "call", "returned", "ended"]
    assert (told["run"]["client"], told["run"]["directory"]) == ("wire", str(house.cwd))
    assert (told["call"]["tool"], told["call"]["line"]) == ("ot.version", 1)
    assert "".join(event["text"] for event in events if event["event"] == "printed") == "hello\n"


def _run_of(meta: dict[str, Any]) -> str:
    return meta.get("onetool", meta)["run"]


def test_without_a_terminal_each_event_is_a_line(house: SharedBed, client: WireServer) -> None:
    client.run("1 + 1")
    with watching(house) as lines:
        until(lines, "tells what its runs do")
        client.run("ot.version()")
        *_, call, returned, ended = until(lines, "ended after")
    assert "ot.version() (line 1)" in call
    assert ("ot.version: " in returned, "ms" in returned or " s" in returned) == (True, True)
    assert "\x1b" not in call + returned + ended


def test_the_last_runs_are_listed_with_what_they_called(house: SharedBed, client: WireServer) -> None:
    reply = client.run("ot.version()")

    def missing() -> str:  # statistics are written half a second later
        found = house.typed("watch", "--last", "--json").stdout
        return "" if _run_of(reply.meta) in found else found or "nothing"

    wait_while(missing)
    rows = json.loads(house.typed("watch", "--last", "--json").stdout)["runs"]
    (row,) = [row for row in rows if row["run"] == _run_of(reply.meta)]
    assert ([call["tool"] for call in row["tools"]], row["error_type"]) == (["ot.version"], "")
    line = next(line for line in house.typed("watch", "--last").stdout.splitlines() if _run_of(reply.meta) in line)
    assert line.endswith("ok    ot.version") or "ot.version" in line


def test_a_person_sees_a_run_answers_what_it_asks_cancels_it_and_looks_back(
    house: SharedBed, client: WireServer
) -> None:
    client.run("1 + 1")
    with at_terminal(own_command("watch"), {**house.environment(), **SIZE}, house.cwd) as terminal:
        terminal.read_until("0 runs open")
        asking = client.send_run("text = 'milk'\nfile.write(path='list.txt', content=text)\n'written'")
        shown = STYLE.sub("", terminal.read_until(" asks first"))
        assert "→   2 file.write(path='list.txt', content=text)" in shown
        assert "file.write(path='list.txt', content='milk')" in shown
        press(terminal, "a")
        terminal.read_until("[n]o: ")
        terminal.type("y")
        assert client.wait(asking, PATIENCE).texts == ["written"]
        assert (house.cwd / "list.txt").read_text() == "milk"

        number = client.send_run(WAIT)
        terminal.read_until("import time")
        press(terminal, "x")
        terminal.read_until("Cancel run")
        press(terminal, "y")
        reply = client.wait(number, PATIENCE)
        assert (reply.is_error, "RunCancelled" in reply.texts[-1]) == (True, True)

        press(terminal, "b")
        terminal.read_until("The last runs")
        terminal.read_until("RunCancelled")
        press(terminal, "q")
        assert terminal.end()[0] == 0


def test_who_watches_does_not_keep_the_server(house: SharedBed, client: WireServer) -> None:
    client.run("1 + 1")
    with watching(house, "--json") as lines:
        until(lines, "server")
        assert house.typed("stop", "--now").returncode == 0
        gone = json.loads(until(lines, "gone")[-1])
        client.run("1 + 1")  # the relay finds a new server, and so does the watch
        again = json.loads(until(lines, '"server"')[-1])
    assert gone["server"] != again["pid"]
    assert again["pid"] == house.daemon()


def test_a_malformed_request_is_refused_and_a_run_that_has_ended_is_not_cancelled(
    house: SharedBed, client: WireServer
) -> None:
    from ot.cli.sharing.running_servers import open_feed

    client.run("1 + 1")
    connection, _ = _as_user(house, lambda: open_feed(house.socket()))
    with connection, connection.makefile("rb") as lines:
        for line in (
            b"nonsense\n",
            b"[]\n",
            b'{"cancel": 7}\n',
            b'{"cancel": "a", "call": true}\n',
            b'{"cancel": "a"}\n',
        ):
            connection.sendall(line)
        told = [json.loads(lines.readline()) for _ in range(5)]
    assert [(one["event"], one["why"]) for one in told] == [("refused", "the request is malformed")] * 4 + [
        ("refused", "it has ended already")
    ]


def _as_user(house: SharedBed, work: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in house.environment().items():
            patch.setenv(name, value)
        return work()
