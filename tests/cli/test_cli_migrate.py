"""onetool config migrate shows the difference, asks, saves the file as it was, and rewrites it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import OneTool

OLD = "# mine\nversion: 1\nalias: # short\n  ws: web.search\n"
NEW = OLD.replace("alias:", "aliases:")


@pytest.fixture
def config(onetool: OneTool) -> Path:
    """The user's file in an older form."""
    onetool.user.mkdir(mode=0o700)
    file = onetool.user / "onetool.yaml"
    file.write_text(OLD)
    return file


def test_a_dry_run_shows_the_difference_and_writes_nothing(onetool: OneTool, config: Path) -> None:
    ended = onetool("config", "migrate", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert f"{config}: 'alias' is called 'aliases'" in ended.out
    assert "-alias: # short\n+aliases: # short\n" in ended.out
    assert config.read_text() == OLD


def test_without_a_terminal_and_without_yes_nothing_is_written(onetool: OneTool, config: Path) -> None:
    ended = onetool("config", "migrate")
    assert ended.code == 4
    assert "add --yes" in ended.err
    assert config.read_text() == OLD


def test_the_file_is_rewritten_and_saved_as_it_was(onetool: OneTool, config: Path) -> None:
    ended = onetool("config", "migrate", "--yes", "--json")
    (row,) = json.loads(ended.out)["files"]
    assert (ended.code, row["file"], row["written"]) == (0, str(config), True)
    assert (config.read_text(), Path(row["backup"]).read_text()) == (NEW, OLD)
    assert onetool("config", "migrate").out == "Nothing to migrate: your configuration is up to date.\n"


def test_a_trusted_project_and_what_it_includes_stay_trusted(onetool: OneTool) -> None:
    onetool.project.mkdir(mode=0o700)
    (onetool.project / "onetool.yaml").write_text("version: 1\ninclude: [team.yaml]\nalias: {a: file.read}\n")
    (onetool.project / "team.yaml").write_text("alias: {b: file.write}\n")
    assert onetool("trust", "--yes").code == 0
    ended = onetool("config", "migrate", "--yes", "--json")
    rows = json.loads(ended.out)["files"]
    assert [(Path(row["file"]).name, row["trusted"]) for row in rows] == [("onetool.yaml", True), ("team.yaml", True)]
    assert (onetool.project / "team.yaml").read_text() == "aliases: {b: file.write}\n"


def test_doctor_names_settings_in_an_older_form(onetool: OneTool, config: Path) -> None:
    found = json.loads(onetool("doctor", "--json").out)["findings"]
    (row,) = [row for row in found if row.get("advice") == "onetool config migrate"]
    assert (row["area"], row["state"]) == ("configuration", "note")
    assert str(config) in row["text"]
