"""What a server offered is remembered, by name and address."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from ot.registry.proxy_target import ServerIdentity
from ot.servers.catalogue_files import CatalogueFiles
from ot.servers.definitions import ServerDefinitions

SEARCH: dict[str, Any] = {"name": "search", "inputSchema": {"type": "object", "maximum": 10**30}}
OFFERED = ServerDefinitions((SEARCH,), ({"name": "greet"},), True, "Be kind.", {"name": "x"}, 17.5)


def test_what_was_offered_comes_back_as_it_was(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path / "servers")
    assert catalogue.read(ServerIdentity("github", "e1")) is None
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    assert CatalogueFiles(tmp_path / "servers").read(ServerIdentity("github", "e1")) == OFFERED
    assert catalogue.read(ServerIdentity("github", "e2")) is None
    assert catalogue.read(ServerIdentity("gitlab", "e1")) is None
    (file,) = (tmp_path / "servers").glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_an_older_version_remembered_for_one_directory_is_taken_over_once(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("github", "of a directory"), OFFERED)
    (old,) = tmp_path.glob("*.json")
    assert catalogue.read(ServerIdentity("github", "e1", former="of a directory")) == OFFERED
    assert not old.exists()
    assert catalogue.read(ServerIdentity("github", "e1", former="of another")) == OFFERED


def test_names_that_a_file_cannot_have_do_not_meet(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("a/../b", "e"), OFFERED)
    assert catalogue.read(ServerIdentity("a_.._b", "e")) is None
    assert catalogue.read(ServerIdentity("a/../b", "e")) == OFFERED
    assert [file.parent for file in tmp_path.rglob("*.json")] == [tmp_path]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff", b"[" * 100_000, b'{"version": 1}', b'{"version": 1, "definitions": 3}']
)
def test_a_damaged_file_is_passed_over_and_written_anew(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = CatalogueFiles(tmp_path)
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    (file,) = tmp_path.glob("*.json")
    file.write_bytes(damage)
    assert catalogue.read(ServerIdentity("github", "e1")) is None
    assert str(file) in caplog.text
    catalogue.write(ServerIdentity("github", "e1"), OFFERED)
    assert catalogue.read(ServerIdentity("github", "e1")) == OFFERED


def test_a_tool_over_the_limits_is_not_remembered(tmp_path: Path) -> None:
    catalogue = CatalogueFiles(tmp_path)
    huge = {"name": "huge", "description": "x" * (2 << 20)}
    catalogue.write(ServerIdentity("github", "e1"), ServerDefinitions((SEARCH, huge)))
    found = catalogue.read(ServerIdentity("github", "e1"))
    assert found
    assert found.tools == (SEARCH,)


def test_a_directory_that_cannot_be_written_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "servers").write_text("a file")
    CatalogueFiles(tmp_path / "servers").write(ServerIdentity("github", "e1"), OFFERED)
    assert "could not be remembered" in caplog.text
