"""The temporary files of a program."""

from __future__ import annotations

import errno

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


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOENT, lambda files: files.open("/tmp/nope", "n", "r")),
        (errno.ENOENT, lambda files: files.open("/tmp/nope/x", "n", "w")),
        (errno.EEXIST, lambda files: files.open("/tmp/f", "f", "x")),
        (errno.EEXIST, lambda files: files.make("/tmp/d", "d")),
        (errno.EISDIR, lambda files: files.open("/tmp/d", "d", "w")),
        (errno.EISDIR, lambda files: files.remove("/tmp/d", "d", directory=False)),
        (errno.ENOTDIR, lambda files: files.remove("/tmp/f", "f", directory=True)),
        (errno.ENOTDIR, lambda files: files.scan("/tmp/f", "f")),
        (errno.ENOTEMPTY, lambda files: files.remove("/tmp/d", "d", directory=True)),
        (errno.EINVAL, lambda files: files.link("/tmp/f", "f")),
    ],
)
def test_errors_have_the_numbers_of_the_system(files: MemoryFiles, number: int, what: object) -> None:
    files.stat("/tmp", "t")
    files.make("/tmp/d", "d")
    files.open("/tmp/f", "f", "w")
    files.open("/tmp/d/inner", "i", "w")
    with pytest.raises(OSError) as caught:
        what(files)  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues] - one of the above
    assert caught.value.errno == number
