"""Where a shared server is looked for: apart for all who must not meet, and only where nobody else can reach."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from ot.processes.child_environ import NETWORK
from ot.relay.place import MAX_SOCKET_PATH, PROCESS_WIDE, Unshared, confinement, find_place, source_root


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A runtime directory with a short path."""
    with tempfile.TemporaryDirectory(prefix="ot", dir="/tmp") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)


def test_the_directory_is_private_and_not_in_the_home_which_may_be_on_another_machine(runtime: Path) -> None:
    place = find_place()
    assert Path(place.directory) == runtime / "onetool"
    assert Path(place.directory).stat().st_mode & 0o777 == 0o700
    assert not Path(place.socket).is_relative_to(Path.home())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such directory")
def test_a_client_without_the_variable_finds_the_place_of_the_others(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / str(os.getuid())).mkdir(0o700)
    monkeypatch.setattr("ot.relay.place.RUNTIME", str(runtime))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / str(os.getuid())))
    there = find_place()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert find_place().socket == there.socket
    assert Path(there.directory).parent.parent == runtime


def test_the_same_client_finds_the_same_place() -> None:
    assert find_place().socket == find_place().socket


@pytest.mark.parametrize("difference", ["home", "umask", "prefix", "python", "namespace", "record", "proxy"])
def test_clients_that_differ_do_not_meet(difference: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = find_place()
    mask = os.umask(0o022)
    os.umask(mask)
    if difference == "home":
        monkeypatch.setenv("HOME", "/elsewhere")
    elif difference == "umask":
        os.umask(mask ^ 0o020)
    elif difference == "proxy":
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    elif difference == "prefix":
        monkeypatch.setattr(sys, "prefix", "/elsewhere")
    elif difference == "python":
        monkeypatch.setattr(sys, "version", "4")
    elif difference == "namespace":
        real = os.stat
        monkeypatch.setattr(
            os, "stat", lambda path, **more: real("/") if str(path).endswith("ns/mnt") else real(path, **more)
        )
    else:
        (tmp_path / "onetool_run-2.dist-info").mkdir()
        (tmp_path / "onetool_run-2.dist-info" / "RECORD").touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
    try:
        after = find_place()
    finally:
        os.umask(mask)
    assert (after.key != before.key, after.socket != before.socket) == (True, True)


def test_who_has_become_another_user_does_not_use_the_directory_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    find_place()
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(Unshared, match="this user alone"):
        find_place()


@pytest.mark.parametrize("home", ["", None])
def test_without_a_home_there_is_no_place(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home) if home is not None else monkeypatch.delenv("HOME")
    with pytest.raises(Unshared, match="HOME"):
        find_place()


def test_the_path_of_the_socket_fits_into_the_systems_limit(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = runtime / ("d" * (MAX_SOCKET_PATH - len(f"{runtime}//onetool/01234567.sock.{os.getpid()}")))
    for directory, fits in ((longest, True), (longest.with_name(longest.name + "d"), False)):
        directory.mkdir()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
        if fits:
            find_place()
        else:
            with pytest.raises(Unshared, match="too long"):
                find_place()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_what_confines_a_process_is_read_of_any_process_and_the_same_for_its_parent() -> None:
    assert confinement("self") == confinement(os.getpid()) == confinement(os.getppid())
    with pytest.raises(OSError, match="No such file"):
        confinement(2**30)


def test_the_packages_are_where_the_relay_is() -> None:
    assert (Path(source_root()) / "ot" / "relay" / "place.py").is_file()


def test_all_variables_by_which_libraries_connect_are_shared() -> None:
    assert set(PROCESS_WIDE) >= NETWORK
