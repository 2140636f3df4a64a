"""What stands for ``open`` and its kin in the jail: which steps it asks of the server, and when."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Callable
from typing import Any

import pytest

from ot.runtime.engines.forked.jail.file_functions import functions_of
from ot.runtime.engines.forked.jail.files import ProgramFiles

STAT = [stat.S_IFREG | 0o644, 1, 1, 1, 0, 0, 0, 0, 0, 0]


class Server:
    """Stands for the channel and the server at its end; it holds one file."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.steps: list[str] = []
        self.before_call: Callable[[], None] = lambda: None

    def ask_file(self, message: Any, data: bytes = b"") -> bytes:
        self.steps.append(message["f"])
        value, rest = self.answer(message["f"], message["k"], data[1:])
        return json.dumps({"v": value}).encode() + b"\n" + rest

    def answer(self, step: str, given: dict[str, Any], data: bytes) -> tuple[Any, bytes]:
        if step == "write":
            at = given.get("at", len(self.content))
            self.content = self.content[:at] + data + self.content[at + len(data) :]
            return len(self.content), b""
        if step == "begin" and given["mode"] == "w":
            self.content = b""
        if step == "where":
            return {"cwd": "/work", "roots": ["/work"]}, b""
        numbers = [*STAT[:6], len(self.content), *STAT[7:]]
        if step == "read":
            return {"stat": numbers}, self.content[given.get("offset", 0) :][: given["size"]]
        return numbers, b""


def opened(server: Server) -> dict[str, Callable[..., Any]]:
    files = ProgramFiles(["/usr/lib"])
    files.begin(server)  # pyright: ignore[reportArgumentType] - it has what is used of a channel
    return functions_of(files)


def test_a_small_file_is_read_by_one_step() -> None:
    server = Server(b"one\ntwo\n")
    with opened(server)["builtins"]("a.txt") as file:
        assert file.readlines() == ["one\n", "two\n"]
    assert server.steps == ["read"]


def test_a_large_file_is_read_by_ranges() -> None:
    server = Server(bytes(9 << 20))
    assert len(opened(server)["builtins"]("a", "rb").read()) == 9 << 20
    assert server.steps == ["read"] * 3


def test_opening_for_writing_asks_at_once_and_what_is_written_goes_at_the_flush() -> None:
    server = Server(b"old")
    file = opened(server)["builtins"]("a.txt", "w")
    assert server.steps == ["begin"]
    file.write("new")
    assert server.steps == ["begin"]
    file.flush()
    assert server.steps == ["begin", "write"]
    assert server.content == b"new"
    file.close()
    assert server.steps == ["begin", "write"]


def test_what_was_handed_to_the_system_goes_before_any_other_step_and_before_a_tool() -> None:
    server = Server()
    functions = opened(server)
    file = functions["builtins"]("a.bin", "wb", buffering=0)
    file.write(b"x")
    assert functions["stat"]("a.bin").st_size == 1
    assert server.steps == ["begin", "write", "stat"]
    file.write(b"y")
    server.before_call()
    assert server.content == b"xy"


def test_a_file_that_is_forgotten_is_written() -> None:
    server = Server()
    opened(server)["builtins"]("a.txt", "w").write("kept")
    assert server.content == b"kept"


def test_the_objects_are_those_of_io_and_have_no_descriptor() -> None:
    functions = opened(Server(b"x"))
    for mode, kind in {"r": io.TextIOWrapper, "rb": io.BufferedReader, "wb": io.BufferedWriter}.items():
        assert isinstance(functions["builtins"]("a", mode), kind)
    assert isinstance(functions["builtins"]("a", "r+b"), io.BufferedRandom)
    with pytest.raises(io.UnsupportedOperation, match="BytesIO"):
        functions["builtins"]("a").fileno()


@pytest.mark.parametrize("mode", ["", "q", "rw", "rbt", "r+w"])
def test_a_mode_that_is_none_is_refused_before_anything_is_asked(mode: str) -> None:
    server = Server()
    with pytest.raises(ValueError):
        opened(server)["builtins"]("a", mode)
    assert server.steps == []


def test_a_half_of_a_character_in_a_path_is_refused_here() -> None:
    server = Server()
    with pytest.raises(ValueError, match="half a character"):
        opened(server)["builtins"]("\ud800")
    assert server.steps == []


def test_what_the_interpreter_may_read_and_what_is_temporary_asks_for_nothing_of_the_workspace() -> None:
    server = Server()
    functions = opened(server)
    assert stat.S_ISDIR(functions["stat"]("/usr/lib").st_mode)
    functions["mkdir"]("/tmp/made-in-memory")
    assert functions["listdir"]("/tmp") == ["made-in-memory"]
    assert server.steps == ["where"]
