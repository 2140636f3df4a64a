"""Every step of the migration rewrites its older form, keeps the rest, and leaves an up-to-date file alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.config.migrations import STEPS, Migration, find_outdated_files, migrate_text, name_version, rename_alias
from ot.config.new_directory import HEAD
from ot.config.yaml_edit import YamlText
from ot.errors import ConfigError


def of(text: str, name: str = "onetool.yaml") -> YamlText:
    return YamlText(text, Path(name))


# ---------------------------------------------------------------- one test a step


def test_alias_is_called_aliases_and_its_comments_stay() -> None:
    old = "version: 1\nalias: # short names\n  ws: web.search # the web\npolicy: {}\n"
    new = "version: 1\naliases: # short names\n  ws: web.search # the web\npolicy: {}\n"
    assert rename_alias(of(old)).text == new


def test_a_file_that_names_no_version_names_the_first() -> None:
    assert name_version(of("# mine\nlimits:\n  calls: 5\n")).plain == {"limits": {"calls": 5}, "version": 1}
    assert name_version(of("limits: {calls: 5}\n", "team.yaml")).plain == {"limits": {"calls": 5}}


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.says)
def test_a_step_changes_nothing_in_a_file_that_is_up_to_date(step: Migration) -> None:
    for text in (HEAD, "version: 1\naliases: {ws: web.search}\n"):
        assert step.change(of(text)) == of(text)


def test_migrating_twice_is_migrating_once() -> None:
    once, steps = migrate_text(of("alias: {ws: web.search}\n"))
    assert steps == tuple(step.says for step in STEPS)
    assert migrate_text(once) == (once, ())


def test_a_migrated_file_means_what_it_meant(desk: Desk) -> None:
    desk.write_user("alias: {ws: web.search}\ninclude: [more/team.yaml]\n")
    desk.write_user("alias: {gh: github.search}\n", "more/team.yaml")
    before = desk.load().config
    for file in find_outdated_files(desk.paths):
        file.file.write_text(file.new.text)
    assert find_outdated_files(desk.paths) == []
    assert desk.load().config == before
    assert before.aliases == {"ws": "web.search", "gh": "github.search"}


def test_included_files_are_found_wherever_they_lie_in_the_directory_and_nowhere_else(desk: Desk) -> None:
    desk.write_user("version: 1\ninclude: [more/a.yaml, ../outside.yaml, missing.yaml]\n")
    desk.write_user("include: [b.yaml, ../onetool.yaml]\n", "more/a.yaml")
    desk.write_user("alias: {ws: web.search}\n", "more/b.yaml")
    desk.write_user("alias: {ws: web.search}\n", "../outside.yaml")
    assert [file.name for file in find_outdated_files(desk.paths)] == ["more/b.yaml"]


def test_a_file_with_both_spellings_is_left_for_its_owner_to_decide(desk: Desk) -> None:
    desk.write_user("version: 1\nalias: {a: x.one}\naliases: {b: x.two}\n")
    assert find_outdated_files(desk.paths) == []
    with pytest.raises(ConfigError, match="keep one"):
        desk.load()
