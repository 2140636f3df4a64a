"""onetool init, check and config migrate: the files that they make, judge and rewrite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cli.command import OneTool


def test_init_writes_a_configuration_that_loads_and_is_trusted(onetool: OneTool) -> None:
    ended = onetool("init")
    assert (ended.code, ended.err) == (0, "")
    assert "Next: onetool check" in ended.out
    names = {file.name for file in onetool.project.iterdir()}
    assert {"onetool.yaml", ".gitignore"} == names
    assert yaml.safe_load((onetool.project / "onetool.yaml").read_text()) == {"version": 1}
    found = json.loads(onetool("check", "--json").out)
    assert (found["ok"], found["project"], found["errors"], found["warnings"]) == (True, "trusted", [], [])
    assert str(onetool.project / "onetool.yaml") in found["files"]


def test_what_init_writes_is_private_to_the_user(onetool: OneTool) -> None:
    onetool("init")
    assert onetool.project.stat().st_mode & 0o777 == 0o700
    assert "secrets" in (onetool.project / ".gitignore").read_text()


def test_a_second_init_refuses_and_changes_nothing(onetool: OneTool) -> None:
    onetool("init")
    file = onetool.project / "onetool.yaml"
    file.write_text("version: 1\n# mine\n")
    ended = onetool("init")
    assert (ended.code, ended.out) == (1, "")
    assert f"{file} exists already" in ended.err
    assert file.read_text() == "version: 1\n# mine\n"


def test_init_does_not_trust_what_others_put_there(onetool: OneTool) -> None:
    pack = onetool.project / "tools" / "evil" / "evil_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text("def f(): ...\n")
    ended = onetool("init")
    assert ended.code == 0
    assert "look at them, then run onetool trust" in ended.out
    assert json.loads(onetool("check", "--json").out)["project"] == "untrusted"


def test_init_can_write_the_users_own_configuration(onetool: OneTool) -> None:
    ended = onetool("init", "--global", "--json")
    assert json.loads(ended.out) == {"directory": str(onetool.user), "trusted": False}
    assert (onetool.user / "onetool.yaml").exists()
    assert not onetool.project.exists()
    assert onetool("check").code == 0
    assert onetool("init", "--global").code == 1


def test_init_tells_as_json_what_it_did(onetool: OneTool) -> None:
    assert json.loads(onetool("init", "--json").out) == {"directory": str(onetool.project), "trusted": True}


def test_init_where_nothing_can_be_written_is_a_sentence(onetool: OneTool) -> None:
    onetool.project.write_text("a file where the directory should be")
    ended = onetool("init")
    assert ended.code == 1
    assert ended.err == f"onetool: nothing was written: {onetool.project} is not a directory and is not used\n"


def test_init_writes_through_no_link(onetool: OneTool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    onetool.project.symlink_to(elsewhere)
    ended = onetool("init")
    assert ended.code == 1
    assert "is a symbolic link" in ended.err
    assert list(elsewhere.iterdir()) == []


def test_init_writes_over_no_file(onetool: OneTool, tmp_path: Path) -> None:
    onetool.project.mkdir()
    (onetool.project / "onetool.yaml").symlink_to(tmp_path / "target")
    ended = onetool("init")
    assert ended.code == 1
    assert ended.err.startswith(f"onetool: {onetool.project / 'onetool.yaml'} cannot be written: ")
    assert not (tmp_path / "target").exists()


# ---------------------------------------------------------------- check


def test_check_says_that_all_is_well(onetool: OneTool) -> None:
    ended = onetool("check")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == "configuration: none, all settings are defaults"
    assert lines[1] == "project: none"
    assert lines[2].endswith(("programs run in the exact engine", "programs run in the portable engine"))
    assert lines[-1] == "ok"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("version: 1\nalaises: {}\n", 2, "aliases"),
        ("limits:\n  calls: many\n", 2, "limits.calls"),
        ("version: 1\n\n\tx: 1\n", 3, ""),
        ("version: 99\n", 1, "newer"),
        ("aliases:\n  ok: file.read\n  print: file.read\n", 3, "print"),
    ],
)
def test_check_names_file_and_line_of_what_is_wrong(onetool: OneTool, text: str, line: int, words: str) -> None:
    onetool.user.mkdir()
    file = onetool.user / "onetool.yaml"
    file.write_text(text)
    ended = onetool("check")
    assert ended.code == 1
    assert f"error: {file}:{line}: " in ended.out
    assert words in ended.out
    assert ended.out.endswith("not ok\n")
    found = json.loads(onetool("check", "--json").out)
    assert found["ok"] is False
    assert found["errors"][0].startswith(f"{file}:{line}: ")


def test_check_warns_of_a_project_that_is_not_used(onetool: OneTool) -> None:
    onetool.project.mkdir()
    (onetool.project / "onetool.yaml").write_text("version: 1\n")
    ended = onetool("check")
    assert ended.code == 0
    assert "warning: " in ended.out
    assert "is not trusted and is not used" in ended.out
    assert "project: untrusted" in ended.out


def test_check_works_as_a_process(onetool: OneTool) -> None:
    ended = onetool.process("check")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("ok\n")


# ---------------------------------------------------------------- the schema


def test_the_schema_is_a_json_schema_that_a_configuration_fits(onetool: OneTool) -> None:
    from jsonschema.validators import validator_for

    ended = onetool("config", "schema")
    assert (ended.code, ended.err) == (0, "")
    schema = json.loads(ended.out)
    on_one_line = onetool("config", "schema", "--json").out
    assert (json.loads(on_one_line), on_one_line.count("\n")) == (schema, 1)
    validator = validator_for(schema)
    validator.check_schema(schema)
    assert not list(validator(schema).iter_errors({"version": 1, "aliases": {"ws": "web.search"}}))
    assert list(validator(schema).iter_errors({"versoin": 1}))
    assert list(validator(schema).iter_errors({"limits": {"calls": "many"}}))


def test_config_without_a_command_shows_help(onetool: OneTool) -> None:
    ended = onetool("config")
    assert "schema" in ended.out + ended.err


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
