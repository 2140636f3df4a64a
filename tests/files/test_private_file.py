"""Files read whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ot.files.private_file import read_regular


def while_read(monkeypatch: pytest.MonkeyPatch, file: Path, writes: int) -> None:
    """Let *file* grow between the two looks at it, in the first *writes* readings."""
    real, left = os.fstat, iter(range(writes))

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if next(left, None) is not None:
            with file.open("a") as growing:
                growing.write("more\n")
        return found

    monkeypatch.setattr(os, "fstat", fstat)


def test_a_file_written_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("one\n")
    while_read(monkeypatch, file, writes=1)
    assert read_regular(file, 100, follow=True).data == b"one\nmore\n"


def test_a_file_that_is_written_all_the_while_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_text("one\n")
    while_read(monkeypatch, file, writes=100)
    with pytest.raises(OSError, match="being written"):
        read_regular(file, 10_000, follow=True)


def test_no_more_than_the_limit_and_one_byte_is_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 1000)
    assert len(read_regular(file, 10, follow=True).data) == 11


def test_a_link_is_followed_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "link").symlink_to("f")
    assert read_regular(tmp_path / "link", 10, follow=True).data == b"one\n"
    with pytest.raises(OSError, match="symbolic"):
        read_regular(tmp_path / "link", 10, follow=False)
