"""A client is given a command that lasts, however OneTool was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import write
from ot.config.clients.launcher import launch_command
from ot.errors import ConfigError


def program(path: Path) -> Path:
    write(path, "#!/bin/sh\n").chmod(0o700)
    return path


def test_a_link_that_was_called_is_kept(tmp_path: Path) -> None:
    tool = program(tmp_path / "share/uv/tools/onetool-run/bin/onetool")
    link = tmp_path / "bin/onetool"
    link.parent.mkdir()
    link.symlink_to(tool)
    assert launch_command(str(link), tool.parents[1], {}) == (str(link), "serve")


def test_a_relative_call_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = program(tmp_path / ".venv/bin/onetool")
    monkeypatch.chdir(tmp_path)
    assert launch_command(".venv/bin/onetool", tmp_path / ".venv", {}) == (str(tool), "serve")


def test_without_a_call_the_program_of_the_environment_is_found(tmp_path: Path) -> None:
    tool = program(tmp_path / ".venv/bin/onetool")
    assert launch_command("-c", tmp_path / ".venv", {"PATH": ""}) == (str(tool), "serve")


def test_what_uvx_started_is_started_by_the_users_uvx_again(tmp_path: Path) -> None:
    prefix = tmp_path / "cache/uv/archive-v0/abc"
    program(prefix / "bin/uvx")
    program(prefix / "bin/onetool")
    own = program(tmp_path / "local/bin/uvx")
    path = f"{prefix / 'bin'}:{own.parent}"
    command = launch_command(str(prefix / "bin/onetool"), prefix, {"PATH": path})
    assert (command[0], command[1], *command[3:]) == (str(own), "--from", "onetool", "serve")
    with pytest.raises(ConfigError, match="uv tool install"):
        launch_command(str(prefix / "bin/onetool"), prefix, {"PATH": str(prefix / "bin")})


def test_where_there_is_no_program_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="uv tool install"):
        launch_command("-c", tmp_path, {"PATH": str(tmp_path)})
