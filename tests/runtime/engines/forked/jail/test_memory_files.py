"""The temporary files of a program."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from ot.runtime.engines.forked.jail.memory_files import MemoryFiles


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
