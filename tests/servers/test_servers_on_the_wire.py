"""OneTool served over standard input and output, with a proxied server that writes what it should not."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_wire import WireServer, strict_json
from servers.desk import fake
from workers.process_watch import assert_gone


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireServer]:
    """OneTool that logs all it can, and a noisy server behind it."""
    home = tmp_path_factory.mktemp("noisy")
    (home / ".onetool").mkdir()
    settings = {"servers": {"fake": fake("print=1", "junk=3")}, "logs": {"level": "DEBUG"}}
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    with WireServer.start(command, cwd=home, env={**os.environ, "HOME": str(home)}) as started:
        assert started.run("fake.junk()").text == "after the junk"
        assert started.run("fake.flood(size=10000)").text == "flooded"
        yield started


@pytest.mark.scenario("004-18")
@pytest.mark.scenario("004-22")
def test_what_servers_and_onetool_say_about_themselves_is_on_standard_error(server: WireServer) -> None:
    end = time.monotonic() + 20
    while "ot.servers.fake: eeee" not in (log := server.stderr_text()) and time.monotonic() < end:
        time.sleep(0.05)  # a thread of the server writes it, a little later
    assert "Welcome to the fake server, line 0!" in log
    assert "ot.servers.fake: eeee" in log
    assert not any(b"Welcome" in line or b"eeee" in line for line in server.lines)


@pytest.mark.scenario("004-23")
def test_replies_are_lines_of_json_rpc_on_standard_output(server: WireServer) -> None:
    reply = server.run("fake.echo(text='one line')")
    assert reply.raw_line in server.lines
    message = strict_json(reply.raw_line)
    assert isinstance(message, dict)
    assert (message["jsonrpc"], message["id"]) == ("2.0", reply.id)
    assert reply.text == "one line"


@pytest.mark.scenario("004-24")
def test_no_line_of_standard_output_is_anything_else(server: WireServer) -> None:
    assert len(server.lines) > 2
    assert server.stdout_junk == []


def test_ping_is_answered_at_once_while_a_server_hangs(server: WireServer) -> None:
    number = server.send_run("fake.silent()")
    assert max(server.ping() for _ in range(20)) < 0.25
    server.cancel(number)
    assert server.run("fake.echo(text='on')").text == "on"


def test_no_process_of_a_server_outlives_onetool(tmp_path: Path) -> None:
    (tmp_path / ".onetool").mkdir()
    (tmp_path / ".onetool" / "onetool.yaml").write_text(json.dumps({"servers": {"fake": fake()}}))
    command = [str(Path(sys.executable).with_name("onetool")), "serve"]
    with WireServer.start(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}) as started:
        pids = [json.loads(started.run("fake.pid()").text)["pid"], int(started.run("fake.fork()").text)]
        started.kill()
    assert_gone(pids)
