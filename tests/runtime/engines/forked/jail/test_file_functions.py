"""The jail's files, children and hooks: what a program opens and leaves, and what runs after a fork."""

from __future__ import annotations

import errno
import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ot.runtime.engines.forked.jail.file_functions import functions_of
from ot.runtime.engines.forked.jail.files import ProgramFiles
from ot.runtime.engines.forked.jail.memory_files import MemoryFiles
from ot.runtime.engines.forked.jail.zygote import REMEMBERED

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
    with pytest.raises(ValueError, match="an unpaired surrogate"):
        opened(server)["builtins"]("\ud800")
    assert server.steps == []


def test_the_standard_library_and_temporary_files_need_no_workspace() -> None:
    server = Server()
    functions = opened(server)
    assert stat.S_ISDIR(functions["stat"]("/usr/lib").st_mode)
    functions["mkdir"]("/tmp/made-in-memory")
    assert functions["listdir"]("/tmp") == ["made-in-memory"]
    assert server.steps == ["where"]


FORKS = """
import os
from ot.runtime.engines.forked.jail import without_fork_hooks
with without_fork_hooks():
    os.register_at_fork(before=lambda: os.write(1, b"before "), after_in_child=lambda: os.write(1, b"ignored "))
os.register_at_fork(after_in_child=lambda: os.write(1, b"kept"))
pid = os.fork()
os.waitpid(pid, 0) if pid else os._exit(0)
"""


def test_hooks_of_modules_imported_meanwhile_never_run_and_later_ones_do() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, timeout=20, check=True)
    assert ended.stdout == b"kept"


STORM = """
import os, signal, socket
from ot.runtime.engines.forked.jail.zygote import Zygote
zygote = Zygote(socket.socketpair()[0], {"jailed": False})
signal.signal(signal.SIGCHLD, zygote._reap)
for _ in range(3000):
    os.fork() or os._exit(0)
zygote._reap()
print(len(zygote._ends))
"""


def test_children_that_end_while_others_are_reaped_do_not_end_the_zygote() -> None:
    ended = subprocess.run([sys.executable, "-c", STORM], capture_output=True, timeout=60, check=False, text=True)
    assert ended.stderr == ""
    assert int(ended.stdout) == REMEMBERED


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles(("/tmp",))


def test_what_is_written_is_read_and_counted(files: MemoryFiles) -> None:
    file = files.open("/tmp/a", "a", "w")
    file.write(0, b"abc")
    file.write(5, b"z")
    assert files.open("/tmp/a", "a", "r").read(0, 100) == b"abc\0\0z"
    assert files.stat("/tmp/a", "a").st_size == 6
    assert files.files() == ["/tmp/a"]


def test_a_tree_moves_with_what_it_holds(files: MemoryFiles) -> None:
    files.make("/tmp/d", "d")
    files.open("/tmp/d/a", "a", "x").write(None, b"1")
    files.rename("/tmp/d", "d", "/tmp/e")
    assert [name for name, _, _ in files.scan("/tmp/e", "e")] == ["a"]
    assert [name for name, _, _ in files.scan("/tmp", "t")] == ["e"]


ERRORS: dict[str, tuple[int, Callable[[MemoryFiles], object]]] = {
    "missing": (errno.ENOENT, lambda files: files.open("/tmp/nope", "n", "r")),
    "missing directory": (errno.ENOENT, lambda files: files.open("/tmp/nope/x", "n", "w")),
    "exists": (errno.EEXIST, lambda files: files.open("/tmp/f", "f", "x")),
    "directory exists": (errno.EEXIST, lambda files: files.make("/tmp/d", "d")),
    "write a directory": (errno.EISDIR, lambda files: files.open("/tmp/d", "d", "w")),
    "unlink a directory": (errno.EISDIR, lambda files: files.remove("/tmp/d", "d", directory=False)),
    "rmdir a file": (errno.ENOTDIR, lambda files: files.remove("/tmp/f", "f", directory=True)),
    "list a file": (errno.ENOTDIR, lambda files: files.scan("/tmp/f", "f")),
    "not empty": (errno.ENOTEMPTY, lambda files: files.remove("/tmp/d", "d", directory=True)),
    "no link": (errno.EINVAL, lambda files: files.link("/tmp/f", "f")),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_numbers_of_the_system(files: MemoryFiles, name: str) -> None:
    number, what = ERRORS[name]
    files.stat("/tmp", "t")
    files.make("/tmp/d", "d")
    files.open("/tmp/f", "f", "w")
    files.open("/tmp/d/inner", "i", "w")
    with pytest.raises(OSError) as caught:
        what(files)
    assert caught.value.errno == number
