"""From a command line to messages: finding the program, looking at the server, and reading its lines."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from ot.errors import ServerUnavailable
from ot.proxied.connection import probe
from ot.proxied.messages import MAX_ITEMS, MAX_PARTS, Allowance, OutputLines, StrayOutput, read_message
from ot.proxied.place import find_program
from ot.proxied.spec import ServerSpec
from ot.values.parts import Unread
from server_process import process_stat

pytestmark = pytest.mark.anyio

MANY = [0] * (MAX_PARTS + 1)
BLOCK = {"type": "text", "text": "x" * 40}
COMPACT = (",", ":")


def _line(separators: tuple[str, str] = COMPACT, **message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=separators).encode()


def test_a_message_of_ordinary_size_is_read() -> None:
    assert isinstance(read_message(_line(id=1, result={"content": []})), JSONRPCResponse)
    assert isinstance(read_message(_line(id="a", method="ping")), JSONRPCRequest)
    assert isinstance(read_message(_line(method="notifications/message")), JSONRPCNotification)


@pytest.mark.parametrize("separators", [COMPACT, (", ", ": ")])
@pytest.mark.parametrize("id", [7, "seven"])
@pytest.mark.parametrize("result", [{"structuredContent": {"result": MANY}}, {"content": [BLOCK] * (MAX_ITEMS + 1)}])
def test_a_reply_that_is_too_large_is_an_error_that_carries_its_bytes(
    separators: tuple[str, str], id: Any, result: Any
) -> None:
    last = json.dumps({"jsonrpc": "2.0", "result": result, "id": id}, separators=separators).encode()
    for line in (_line(separators, id=id, result=result), last):
        message = read_message(line)
        assert isinstance(message, JSONRPCError)
        assert message.id == id
        assert isinstance(message.error.data, Unread)
        assert json.loads(message.error.data.data) == result


@pytest.mark.parametrize(
    "line",
    [
        b"junk",
        b"[1,2]",
        _line(method="notifications/message", params={"data": MANY}),
        _line(id=1, method="elicitation/create", params={"message": "x" * 200_000}),
        _line(method="notifications/message", params={"data": "x" * 200_000}),
        b'{"jsonrpc":"2.0","result":{"a":' + json.dumps(MANY).encode() + b'},"other":1}',
    ],
)
def test_what_a_server_has_no_reason_to_send_is_no_message(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_message(line)


def test_a_large_meta_is_left_out_and_the_value_stays() -> None:
    kept: dict[str, Any] = {"content": [], "structuredContent": {"a": 1}}
    message = read_message(_line(id=1, result={**kept, "_meta": {"m": [0] * 50_000}}))
    assert isinstance(message, JSONRPCResponse)
    assert message.result == kept


def test_a_server_may_say_so_much_of_its_own_accord_and_no_more() -> None:
    allowance = Allowance(3)
    assert [allowance.takes() for _ in range(5)] == [True, True, True, False, False]


def test_a_reply_that_is_nested_too_deeply_fails_its_call_at_once() -> None:
    nest = b"[" * 5000 + b"]" * 5000
    message = read_message(b'{"jsonrpc":"2.0","id":5,"result":{"structuredContent":{"a":' + nest + b"}}}")
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.data) == (5, None)


def program(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


def test_the_path_is_searched_first(tmp_path: Path) -> None:
    wanted = program(tmp_path / "bin" / "uvx")
    program(tmp_path / ".local" / "bin" / "uvx")
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert find_program("uvx", environ, tmp_path) == (str(wanted), environ)


def test_a_known_place_is_searched_then_and_added_to_the_path(tmp_path: Path) -> None:
    wanted = program(tmp_path / ".local" / "bin" / "uvx-of-mine")
    found, environ = find_program("uvx-of-mine", {"PATH": "/nowhere", "HOME": str(tmp_path)}, tmp_path)
    assert found == str(wanted)
    assert environ["PATH"] == f"{wanted.parent}:/nowhere"


def test_a_program_that_is_not_found_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="'nothing-of-this-name' was not found"):
        find_program("nothing-of-this-name", {"PATH": "", "HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize("path", ["", ".", "bin", "./bin"])
def test_a_relative_entry_of_the_path_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    for file in (tmp_path / "git-of-mine", tmp_path / "bin" / "git-of-mine"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        find_program("git-of-mine", {"PATH": f"/nowhere:{path}", "HOME": str(tmp_path / "home")}, tmp_path)


def test_a_path_is_meant_from_where_the_server_is_started(tmp_path: Path) -> None:
    wanted = program(tmp_path / "server" / "run.sh")
    environ = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    assert find_program("./run.sh", environ, tmp_path / "server") == (str(wanted), environ)


SILENT = """
import os, sys, time
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
sys.stderr.write("thinking\\n")
sys.stderr.flush()
time.sleep(60)
"""


async def test_a_silent_server_is_given_up_in_time_and_ended(tmp_path: Path) -> None:
    script, pid_file = tmp_path / "silent.py", tmp_path / "pid"
    script.write_text(SILENT)
    spec = ServerSpec(
        "silent", "silent", command=sys.executable, args=("-I", "-S", str(script), str(pid_file)), start_seconds=2
    )
    with pytest.raises(ServerUnavailable, match="did not start within 2 s") as error:
        await probe(spec)
    assert "It said: thinking" in str(error.value)
    assert process_stat(int(pid_file.read_text())) is None


async def test_a_program_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(ServerUnavailable, match="no-such-program"):
        await probe(ServerSpec("gone", "gone", command="no-such-program"))


async def test_a_server_with_a_problem_is_not_started() -> None:
    with pytest.raises(ServerUnavailable, match="needs TOKEN"):
        await probe(ServerSpec("s", "s", command="sh", problem="env.A needs TOKEN"))


async def test_an_address_where_nobody_listens_is_unavailable() -> None:
    with pytest.raises(ServerUnavailable):
        await probe(ServerSpec("far", "far", url="http://127.0.0.1:9/mcp", start_seconds=10))


class Chunks:
    """A stream of given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = list(pieces)

    async def read(self, n: int = -1, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def lines_of(pieces: list[bytes], most: int = 100) -> tuple[list[bytes], StrayOutput]:
    """Return the lines of *pieces*, and what was noise."""

    async def read() -> list[bytes]:
        found: list[bytes] = []
        while (line := await reader.line()) is not None:
            found.append(line)
        return found

    noise = StrayOutput("any")
    reader = OutputLines(Chunks([piece for piece in pieces if piece]), noise, most)
    return asyncio.run(read()), noise


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_where_a_stream_is_cut_does_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = [line for line in whole.split(b"\n")[:-1] if line.strip() and len(line) <= 100]
    assert lines_of(pieces)[0] == expected
    assert lines_of([whole])[0] == expected


def test_a_line_that_is_too_long_is_noise_and_the_next_is_read() -> None:
    lines, noise = lines_of([b"a" * 60, b"a" * 60, b"\nshort\n"])
    assert lines == [b"short"]
    assert "120 bytes, more than 100" in noise.text


def test_a_last_line_without_an_end_is_noise() -> None:
    lines, noise = lines_of([b"one\ntw"])
    assert lines == [b"one"]
    assert "'tw' (its end is missing)" in noise.text


def test_noise_is_escaped_cut_and_counted() -> None:
    noise = StrayOutput("any")
    assert noise.text == ""
    for _ in range(1000):
        noise.add(b"\x1b[31mred\x07" + b"x" * 10_000)
    assert "1,000 lines" in noise.text
    assert "\\x1b[31mred\\x07" in noise.text
    assert len(noise.text) < 400
