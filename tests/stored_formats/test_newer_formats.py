"""What a newer release wrote is refused or left alone, never half read: what the page on stored formats says."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ot.config.trust import Trust
from ot.errors import ConfigError, LedgerUnavailable, ResultNotFound
from stored_formats.formats import FORMATS, SAMPLES
from stored_formats.frozen_world import frozen
from stored_formats.make_samples import release
from stored_formats.test_stored_formats import copied

READ: Mapping[str, Callable[[Path], Any]] = {one.name: one.read for one in FORMATS}


def newer(name: str, to: Path, old: str, new: str) -> Path:
    """Return a copy of the sample *name* in which *old* is written as *new*."""
    directory = copied(SAMPLES / release() / name, to / "copy")
    changed = 0
    for file in directory.rglob("*.*"):
        if file.is_file() and old in (text := file.read_text(errors="surrogateescape")):
            file.write_text(text.replace(old, new), errors="surrogateescape")
            changed += 1
    assert changed
    return directory


def read(name: str, directory: Path) -> Any:
    """Return what today's code makes of a sample."""
    with frozen("reader"):
        return READ[name](directory)


def test_a_newer_configuration_is_refused_with_the_version_that_it_needs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="version 2 needs a newer release"):
        read("configuration", newer("configuration", tmp_path, "version: 1", "version: 2"))


def test_a_newer_record_of_trust_trusts_nothing(tmp_path: Path) -> None:
    directory = newer("trust", tmp_path, '"version":1'.replace(":", ": "), '"version": 2')
    assert Trust(directory).list() == {}
    assert "damaged" in Trust(directory)._read()[1][0]


def test_a_newer_catalogue_counts_as_none_and_the_server_is_asked(tmp_path: Path) -> None:
    assert read("catalogue", newer("catalogue", tmp_path, '"version": 1', '"version": 2')) is None


def test_newer_statistics_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="newer release"):
        read("statistics", newer("statistics", tmp_path, "user_version = 4", "user_version = 5"))


def test_a_newer_ledger_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="newer release"):
        read("ledger", newer("ledger", tmp_path, "user_version = 2", "user_version = 3"))


def test_newer_notes_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="newer release"):
        read("notes", newer("notes", tmp_path, "user_version = 1", "user_version = 2"))


@pytest.mark.parametrize("name", ["results_in_files", "results_in_objects"])
def test_a_newer_stored_result_is_not_found(name: str, tmp_path: Path) -> None:
    directory = copied(SAMPLES / release() / name, tmp_path / "copy")
    for file in (file for file in directory.rglob("*") if file.is_file()):
        file.write_bytes(file.read_bytes().replace(b'"version":1', b'"version":2'))
    with pytest.raises(ResultNotFound):
        read(name, directory)


def test_keys_of_a_newer_login_are_left_out(tmp_path: Path) -> None:
    directory = newer("login", tmp_path, '"record": {', '"record": {"device": "x", ')
    assert read("login", directory) == READ_LOGIN


READ_LOGIN = next(one.expected for one in FORMATS if one.name == "login")


def test_pins_of_a_form_that_cannot_be_read_approve_nothing(tmp_path: Path) -> None:
    directory = newer("pins", tmp_path, '"approved"', '"approved_by_user"')
    assert read("pins", directory)["as approved"] != []


def test_the_samples_databases_are_of_the_versions_that_the_code_writes() -> None:
    from ot.ledger import ledger_file
    from ot.notes import notes_database
    from ot.stats import schema

    for name, version in (
        ("ledger/ledger.sql", ledger_file.VERSION),
        ("notes/notes.sql", notes_database.VERSION),
        ("statistics/stats.sql", schema.VERSION),
    ):
        connection = sqlite3.connect(":memory:")
        connection.executescript((SAMPLES / release() / name).read_text())
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        connection.close()


def test_notes_about_clients_with_unknown_keys_are_not_used(tmp_path: Path) -> None:
    directory = newer("connections", tmp_path, '"name": ', '"since": 1, "name": ')
    assert read("connections", directory) is None
    assert json.loads((directory / "connections.json").read_text())
