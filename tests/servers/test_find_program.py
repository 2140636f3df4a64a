"""A server's program is found where its user would find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.servers.place import find_program


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


def test_what_is_nowhere_is_named(tmp_path: Path) -> None:
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
