"""An edit on disk is checked first, backed up, private, and keeps a project's trust exactly if it had it."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.config.edit_config import Edited, edit_config, read_kept_secrets, with_pattern
from ot.config.new_directory import HEAD
from ot.config.paths import Paths
from ot.config.yaml_edit import YamlText
from ot.errors import ConfigError


def edit(desk: Desk, *, use_global: bool, name: str = "a", secrets: dict[str, str] | None = None) -> Edited:
    def change(text: YamlText) -> YamlText:
        return text.put(("servers", name), {"command": "sh"})

    return edit_config(Paths.of(desk.cwd, desk.user), change, use_global=use_global, secrets=secrets)


def state(desk: Desk) -> str:
    return desk.trust.state(desk.project).state


def test_a_missing_file_is_made_with_what_was_asked_for_alone(desk: Desk) -> None:
    edited = edit(desk, use_global=True)
    assert (edited.changed, edited.backup, edited.trusted) == (True, None, None)
    assert edited.file.read_text() == f"{HEAD}\nservers:\n  a:\n    command: sh\n"
    assert {file.name for file in desk.user.iterdir()} >= {"onetool.yaml", ".gitignore"}
    assert not (desk.user / "onetool.schema.json").exists()
    assert set(desk.load().config.servers) == {"a"}


def test_the_old_file_is_kept_as_a_backup_and_the_mode_stays(desk: Desk) -> None:
    file = desk.write_user("version: 1 # mine\n")
    file.chmod(0o640)
    edited = edit(desk, use_global=True)
    assert edited.backup
    assert edited.backup.read_text() == "version: 1 # mine\n"
    assert (edited.backup.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o600, 0o640)


def test_a_link_of_the_users_stays_a_link(desk: Desk, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("version: 1\n")
    desk.user.mkdir(parents=True)
    (desk.user / "onetool.yaml").symlink_to(real)
    edit(desk, use_global=True)
    assert (desk.user / "onetool.yaml").is_symlink()
    assert "servers:" in real.read_text()


def test_a_trusted_project_stays_trusted(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    desk.trust_project()
    assert edit(desk, use_global=False, secrets={"KEY": "value-1"}).trusted is True
    assert state(desk) == "trusted"
    assert set(desk.load().config.servers) == {"a"}


def test_an_untrusted_project_stays_untrusted(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    assert edit(desk, use_global=False).trusted is False
    assert state(desk) == "untrusted"


def test_a_changed_project_stays_changed(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    desk.trust_project()
    desk.write_project("def f(): ...\n", "tools/evil/evil_tools.py")
    assert edit(desk, use_global=False).trusted is False
    assert state(desk) == "changed"


def test_what_changes_during_the_edit_is_not_trusted_with_it(desk: Desk) -> None:
    desk.write_project("version: 1\n")
    desk.trust_project()

    def change(text: YamlText) -> YamlText:
        desk.write_project("def f(): ...\n", "tools/evil/evil_tools.py")
        return text.put(("servers", "a"), {"command": "sh"})

    assert edit_config(Paths.of(desk.cwd, desk.user), change, use_global=False).trusted is False
    assert state(desk) == "changed"


def test_a_new_project_is_trusted_unless_others_put_something_there(desk: Desk) -> None:
    assert edit(desk, use_global=False).trusted is True
    assert state(desk) == "trusted"


def test_a_new_configuration_among_other_peoples_files_is_not_trusted(desk: Desk) -> None:
    desk.write_project("def f(): ...\n", "tools/evil/evil_tools.py")
    assert edit(desk, use_global=False).trusted is False
    assert state(desk) == "untrusted"


def test_secrets_are_private_and_keep_what_was_there(desk: Desk) -> None:
    desk.write_user("# mine\nOLD: one\n", "secrets.yaml")
    edited = edit(desk, use_global=True, secrets={"NEW": "two: #3", "LINES": "a\nb"})
    assert edited.secrets_file
    assert edited.secrets_file.stat().st_mode & 0o777 == 0o600
    assert edited.secrets_file.read_text().startswith("# mine\nOLD: one\n")
    paths = Paths.of(desk.cwd, desk.user)
    assert read_kept_secrets(paths, use_global=True) == {"OLD": "one", "NEW": "two: #3", "LINES": "a\nb"}
    assert "two" not in edited.file.read_text()


def test_what_would_not_load_is_not_written(desk: Desk) -> None:
    file = desk.write_user("servers: {a-b: {command: x}}\n")
    with pytest.raises(ConfigError, match="becomes the pack 'a_b'"):
        edit(desk, use_global=True, name="a.b", secrets={"KEY": "value"})
    assert file.read_text() == "servers: {a-b: {command: x}}\n"
    assert {path.name for path in desk.user.iterdir()} == {"onetool.yaml", ".edit.lock"}


def test_a_pattern_is_in_one_list_only() -> None:
    text = YamlText("policy:\n  allow: [a.b, c.d] # mine\n", Path("f"))
    denied = with_pattern(text, "deny", "a.b")
    assert denied.plain == {"policy": {"allow": ["c.d"], "deny": ["a.b"]}}
    assert with_pattern(denied, "deny", "a.b").text == denied.text
    assert with_pattern(denied, "allow", "a.b").plain == {"policy": {"allow": ["c.d", "a.b"], "deny": []}}


# ---------------------------------------------------------------- a project whose settings are somebody else's

REDIRECTS = ["~/.bash_profile", "../README.md", "../../elsewhere.yaml", "tmp/d/x.yaml", "other.yaml"]


@pytest.mark.parametrize("to", REDIRECTS)
def test_no_secret_is_written_where_an_untrusted_project_wants_it(desk: Desk, to: str, tmp_path: Path) -> None:
    (desk.cwd / "README.md").write_text("read me\n")
    desk.write_project(f"secrets_file: {to}\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError):
        edit(desk, use_global=False, secrets={"API_KEY": "value-1"})
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".edit.lock"} == before
    assert read_kept_secrets(Paths.of(desk.cwd, desk.user), use_global=False) == {}


def test_a_trusted_project_chooses_its_secrets_file_and_stays_trusted(desk: Desk) -> None:
    desk.write_project("secrets_file: private/mine.yaml\n")
    desk.trust_project()
    edited = edit(desk, use_global=False, secrets={"API_KEY": "value-1"})
    assert (edited.secrets_file, edited.trusted) == (desk.project / "private" / "mine.yaml", True)
    assert desk.load().secrets.project == {"API_KEY": "value-1"}


@pytest.mark.parametrize("name", ["secrets.yaml", "onetool.yaml"])
def test_nothing_is_read_or_written_through_a_link_of_a_project(desk: Desk, name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("version: 1\n")
    desk.write_project("version: 1\n")
    (desk.project / name).unlink(missing_ok=True)
    (desk.project / name).symlink_to(outside)
    with pytest.raises(ConfigError):
        edit(desk, use_global=False, secrets={"API_KEY": "value-1"})
    assert outside.read_text() == "version: 1\n"


@pytest.mark.parametrize("name", ["$(cmd)_KEY", "a b", "ÄPI", "", "1A", "A\nB"])
@pytest.mark.parametrize("use_global", [True, False])
def test_a_secrets_name_is_letters_digits_and_underscores(desk: Desk, name: str, use_global: bool) -> None:
    with pytest.raises(ConfigError, match="cannot be a secret's name"):
        edit(desk, use_global=use_global, secrets={name: "value-1"})
    assert not (desk.user / "secrets.yaml").exists()
    assert not desk.project.exists()


def test_what_came_from_a_repository_is_not_trusted_by_being_written(desk: Desk) -> None:
    def change(text: YamlText) -> YamlText:
        return text.put(("servers", "a"), {"command": "sh"})

    paths = Paths.of(desk.cwd, desk.user)
    assert edit_config(paths, change, use_global=False, from_repository=True).trusted is False
    assert state(desk) == "untrusted"
    desk.trust_project()
    # What is there already, and trusted, stays so.
    assert edit_config(paths, lambda text: text, use_global=False, from_repository=True).trusted is True
    assert state(desk) == "trusted"


@pytest.mark.parametrize("use_global", [True, False])
def test_a_gitignore_that_is_a_link_to_nowhere_yet_makes_no_file_there(desk: Desk, use_global: bool) -> None:
    place = desk.user if use_global else desk.project
    place.mkdir(parents=True)
    (place / ".gitignore").symlink_to(desk.cwd / "made")
    edit(desk, use_global=use_global)
    assert not (desk.cwd / "made").exists()
