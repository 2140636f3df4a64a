"""A relay: small, quick to start, and in nobody's way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from daemon.shared_user import ONETOOL, SharedUser, is_alone
from mcp_wire import HANDSHAKE
from pace import PATIENCE

FROM_C = {"_json", "_socket", "binascii", "fcntl", "select"}
"""What a relay needs beside what Python imports anyway; each is a library in C."""
MEGABYTE = 1 << 20


def test_a_relay_imports_itself_and_five_libraries(user: SharedUser) -> None:
    command = [sys.executable, "-P", "-c", "from ot.entry import main; main()", "serve", "--shared"]
    env = user.environment(PYTHONPROFILEIMPORTTIME="1")
    done = subprocess.run(
        command, cwd=user.cwd, env=env, stdin=subprocess.PIPE, capture_output=True, text=True, timeout=60, check=True
    )
    after = done.stderr[done.stderr.index("ot.entry") :]
    names = {line.rpartition("|")[2].strip() for line in after.splitlines()[1:]}
    files = ("header", "place", "reach", "relay", "servers", "tracking", "tries")
    ours = {"ot.relay", *(f"ot.relay.{name}" for name in files)}
    assert names == ours | FROM_C, f"beside them: {names - ours - FROM_C}"


def test_a_megabyte_in_each_direction_at_once_blocks_nobody(user: SharedUser) -> None:
    with user.client() as client:
        texts = [letter * (MEGABYTE - 100) for letter in "abcdef"]
        numbers = [client.send_run(f"{text!r}") for text in texts]
        assert [client.wait(number).text for number in numbers] == texts
        assert client.stdout_junk == []
        assert not is_alone(client)


def test_a_line_that_is_too_long_is_refused_by_the_server_and_the_next_is_answered(user: SharedUser) -> None:
    with user.client() as client:
        client.send_raw(b'{"jsonrpc":"2.0","id":900,"method":"ping","params":{"x":"')
        for _ in range(20):
            client.send_raw(b"x" * MEGABYTE)
        client.send_raw(b'"}}\n')
        assert "at most" in client.wait(None).text
        assert client.run("1 + 1").text == "2"


def test_lines_that_end_in_both_ways_and_blank_ones_are_understood(user: SharedUser) -> None:
    with user.client() as client:
        client.send_raw(b'\n\r\n{"jsonrpc":"2.0","id":901,"method":"ping"}\r\n\n{"jsonrpc":"2.0",')
        assert client.wait(901).result == {}
        client.send_raw(b'"id":902,"method":"ping"}\n')
        assert client.wait(902).result == {}


def test_input_that_is_a_file_is_answered_and_the_relay_ends(user: SharedUser, tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    (tmp_path / "input").write_text(json.dumps(request) + "\n")
    with (tmp_path / "input").open("rb") as file:
        done = subprocess.run(
            [ONETOOL, "serve", "--shared"],
            cwd=user.cwd, env=user.environment(), stdin=file, capture_output=True, timeout=PATIENCE, check=True,
        )  # fmt: skip
    assert json.loads(done.stdout)["id"] == 1


def test_each_client_works_in_its_own_directory_with_its_own_environment(user: SharedUser, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "who.txt").write_text(name)
    with user.client(cwd=tmp_path / "one") as one, user.client(OT_CWD=str(tmp_path / "two")) as two:
        read = "file.read(path='who.txt')"
        assert ["one" in one.run(read).text, "two" in two.run(read).text] == [True, True]
        assert user.connections() == 2


def test_clients_behind_the_same_proxy_share_a_server(user: SharedUser) -> None:
    proxy = "http://127.0.0.1:9"
    with user.client(HTTPS_PROXY=proxy) as one, user.client(HTTPS_PROXY=proxy) as two:
        assert [one.run("1 + 1").text, two.run("1 + 1").text] == ["2", "2"]
        assert [is_alone(one), is_alone(two)] == [False, False]
        assert len(user.daemons()) == 2
