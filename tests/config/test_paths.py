"""Where settings are looked for. Where the user's own directory is, whatever HOME says."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from config.desk import Desk
from ot.config.paths import Paths
from ot.errors import ConfigError


def test_the_working_directory_is_the_process_own_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Paths.find({}).cwd == tmp_path
    other = tmp_path / "other"
    other.mkdir()
    assert Paths.find({"OT_CWD": str(other)}).cwd == other
    assert Paths.find({"OT_CWD": ""}).cwd == tmp_path


def test_the_users_directory_is_in_the_home_directory(home: Path) -> None:
    assert Paths.find({}).global_dir == home / ".onetool"


def test_a_working_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="OT_CWD is not a directory"):
        Paths.find({"OT_CWD": str(tmp_path / "gone")})


def test_a_working_directory_that_was_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="set OT_CWD"):
        Paths.find({})


def test_no_parent_directory_is_searched(desk: Desk) -> None:
    desk.project.mkdir()
    below = desk.cwd / "below"
    below.mkdir()
    assert Paths.of(below, desk.user).project_dir is None
    assert Paths.of(desk.cwd, desk.user).project_dir == desk.project


def test_a_linked_project_directory_is_not_used_and_that_is_said(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    desk.project.symlink_to(tmp_path / "elsewhere")
    loaded = desk.load()
    assert loaded.project_state == "none"
    assert loaded.warnings == (f"{desk.project} is a symbolic link and is not used",)
    assert loaded.state_dir == desk.user


def test_a_link_in_a_circle_is_not_used(desk: Desk) -> None:
    desk.project.symlink_to(desk.project)
    assert "symbolic link" in Paths.of(desk.cwd, desk.user).ignored


def test_a_file_called_like_the_project_directory_is_not_used(desk: Desk) -> None:
    desk.project.write_text("x")
    assert "is not a directory" in Paths.of(desk.cwd, desk.user).ignored


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_not_used(desk: Desk) -> None:
    desk.project.mkdir()
    os.chown(desk.project, 12345, 12345)
    found = Paths.of(desk.cwd, desk.user)
    assert found.project_dir is None
    assert "belongs to another user" in found.ignored


def test_an_empty_home_is_none_and_the_list_of_users_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    assert Paths.find().global_dir == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".onetool"


def test_a_home_that_is_no_absolute_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "somewhere")
    with pytest.raises(ConfigError, match="HOME is not an absolute path"):
        Paths.find()
