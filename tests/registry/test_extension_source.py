"""One pack's file, read where its author has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import ToolUnavailable
from ot.registry.extension_source import MAX_BYTES, extension_of_file, pack_name_of, pack_name_problem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A pack in a directory of its own."""
    path = tmp_path / "tools" / "odd" / "odd_tools.py"
    path.parent.mkdir(parents=True)
    path.write_text("def f(): ...\n")
    return path


@given(st.text(max_size=12))
def test_every_name_that_has_no_problem_can_be_written_in_a_program(name: str) -> None:
    if not pack_name_problem(name):
        compile(f"{name}.f()", "program", "eval")
        assert name not in ("ot", "proj")
        assert name == pack_name_of(Path(f"{name}_tools.py"))


def test_a_file_that_is_not_called_like_a_pack_is_refused() -> None:
    for name in ("odd.py", "odd_tools.pyc", "_tools.py", "ot_tools.py", "class_tools.py"):
        with pytest.raises(ToolUnavailable):
            pack_name_of(Path(name))


def test_the_files_beside_it_belong_to_a_pack_in_a_directory_of_its_own(file: Path, tmp_path: Path) -> None:
    file.with_name("more.py").write_text("x = 1\n")
    assert {"odd_tools.py", "more.py"} == set(extension_of_file(file, tmp_path).files)
    alone = tmp_path / "odd_tools.py"
    alone.write_text("def f(): ...\n")
    assert {"odd_tools.py"} == set(extension_of_file(alone, tmp_path).files)


def test_only_a_pack_in_the_users_directory_is_the_users_own(file: Path, tmp_path: Path) -> None:
    assert not extension_of_file(file, tmp_path).of_project
    assert extension_of_file(file, tmp_path / "elsewhere").of_project


def test_what_cannot_be_read_is_a_pack_with_a_problem(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    assert "larger than" in extension_of_file(file, tmp_path).pack().broken
    file.unlink()
    assert "No such file" in extension_of_file(file, tmp_path).pack().broken
    file.write_text("def f(): ...\n")
    file.with_name("link.py").symlink_to(tmp_path)
    assert "link.py is a symbolic link" in extension_of_file(file, tmp_path).pack().broken
