"""The settings: their page, their newer forms, and the sections of servers and object storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.cli.terminal.trust_screen import Known, lines_of, screen_of
from ot.config.inventory import take_inventory
from ot.config.load import load_config
from ot.config.migrations import STEPS, Migration, find_outdated_files, migrate_text, name_version, rename_alias
from ot.config.models import Config
from ot.config.new_directory import HEAD
from ot.config.problems import FIXED
from ot.config.shape import all_keys
from ot.config.yaml_edit import YamlText
from ot.errors import ConfigError

OF_TEAM_AND_CHAT = ("chat", "http", "output.store", "state", "telemetry")
MOST = 150
"""More than these nobody reads before the first edit of a configuration."""


def test_the_server_itself_has_few_settings() -> None:
    names = [key.name for key in all_keys()]
    ours = [name for name in names if not any(f"{name}.".startswith(f"{part}.") for part in OF_TEAM_AND_CHAT)]
    assert len(ours) <= MOST


@pytest.mark.parametrize("name", FIXED)
def test_what_was_a_setting_says_what_holds_instead(desk: Desk, name: str) -> None:
    section, _, key = name.partition(".")
    desk.write_user(f"{section}: {{{key}: 1}}\n")
    with pytest.raises(ConfigError, match=FIXED[name]):
        desk.load()


STORE = """
output:
  store:
    url: s3://results/team
    endpoint: https://s3.example.com
    access_key_id: ${S3_KEY}
    secret_access_key: ${S3_SECRET}
"""


def test_credentials_come_from_secrets_and_from_the_environment_and_are_redacted(desk: Desk) -> None:
    desk.environment = {"S3_SECRET": "the secret of the bucket"}
    desk.write_user(STORE)
    desk.write_user("S3_KEY: the key of the bucket\n", "secrets.yaml")
    loaded = desk.load()
    store = loaded.config.output.store
    assert (store.access_key_id, store.secret_access_key) == ("the key of the bucket", "the secret of the bucket")
    assert loaded.secrets.redact(f"{store.access_key_id} {store.secret_access_key}") == (
        "[secret:S3_KEY] [secret:S3_SECRET]"
    )
    assert "of the bucket" not in repr(loaded)


def test_a_user_of_a_team_puts_no_secret_of_their_own_there(desk: Desk) -> None:
    desk.write_user(STORE)
    desk.write_user("S3_KEY: the operator's\nS3_SECRET: the operator's\n", "secrets.yaml")
    own = desk.write_user("S3_KEY: somebody else's\n", "own.yaml")
    store = load_config(desk.paths, desk.trust, own_secrets=own).config.output.store
    assert store.access_key_id == "the operator's"


def test_a_missing_secret_is_named(desk: Desk) -> None:
    desk.write_user(STORE)
    with pytest.raises(ConfigError, match=r"output.store.access_key_id needs S3_KEY, which is not set"):
        desk.load()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("url: gs://bucket", "is not an address of a store: write s3://bucket/prefix or file:///directory"),
        ("url: file://relative", "is not an address of a store"),
        ("url: s3://bucket/../other", "is not an address of a store"),
        ("url: 's3://${BUCKET}'", "is not an address of a store"),
        ("endpoint: 169.254.169.254", "is not an address of a server"),
        ("access_key_id: alone", "access_key_id and secret_access_key belong together"),
    ],
)
def test_what_does_not_lead_to_a_store_is_refused(desk: Desk, line: str, words: str) -> None:
    desk.write_user(f"output:\n  store:\n    {line}\n")
    with pytest.raises(ConfigError, match=words):
        desk.load()


def test_a_project_says_nothing_about_it(desk: Desk) -> None:
    desk.write_project("output: {store: {url: 's3://theirs'}}\n")
    desk.trust_project()
    with pytest.raises(ConfigError, match=r"output.store may not be set by a project"):
        desk.load()


def test_two_servers_of_one_pack_are_refused_with_the_line(desk: Desk) -> None:
    file = desk.write_user("servers:\n  a-b:\n    command: x\n  a.b:\n    command: y\n")
    with pytest.raises(ConfigError) as error:
        desk.load()
    assert f"{file}:4: servers.a.b becomes the pack 'a_b', as another server does ({file}:2)" in str(error.value)


def test_a_disabled_server_clashes_with_nothing(desk: Desk) -> None:
    desk.write_user("servers:\n  a-b: {command: x, enabled: false}\n  a.b: {command: y}\n  c: {command: z, pack: d}\n")
    assert len(desk.load().config.servers) == 3


def test_a_project_adds_denials_and_takes_none_away(desk: Desk) -> None:
    desk.write_user("policy: {ask: [a.b], deny: [c.d]}\n")
    desk.write_project("policy: {deny: [e.f]}\n")
    desk.trust_project()
    policy = desk.load().config.policy
    assert (policy.ask, policy.deny) == (("a.b",), ("c.d", "e.f"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("policy: {allow: [vault.*]}", "policy.allow may not be set by a project"),
        ("policy: {ask: [vault.open]}", "policy.ask may not be set by a project"),
        ("policy: {ask_seconds: 301}", "policy.ask_seconds may not be raised by a project"),
        (
            "policy: {changed_definitions: flag}",
            "policy.changed_definitions may not be loosened by a project: it is 'block'",
        ),
    ],
)
def test_a_project_may_not_loosen_the_policy(desk: Desk, line: str, words: str) -> None:
    desk.write_user("policy: {changed_definitions: block}\n")
    file = desk.write_project(f"# mine\n{line}\n")
    desk.trust_project()
    with pytest.raises(ConfigError) as error:
        desk.load()
    assert str(error.value).startswith(f"{file}:2: {words}")


def test_a_project_may_make_the_policy_stricter(desk: Desk) -> None:
    desk.write_project("policy: {ask_seconds: 10, changed_definitions: block}\n")
    desk.trust_project()
    policy = desk.load().config.policy
    assert (policy.ask_seconds, policy.changed_definitions) == (10, "block")


def test_trust_shows_the_whole_command_line(desk: Desk) -> None:
    arguments = ", ".join(f"argument-{n}" for n in range(40))
    desk.write_project(
        f"servers:\n  a: {{command: sh, args: [-c, 'rm it', {arguments}], env: {{A: '${{B}}'}}}}\n  b: {{url: 'https://h/'}}\n"
    )
    lines = lines_of(screen_of(take_inventory(desk.project), Known(Config(), {})))
    start = lines.index("servers (2)")
    assert lines[start + 1] == "  a"
    assert lines[start + 2].startswith("    runs: sh -c 'rm it' argument-0 argument-1")
    assert lines[start + 2].endswith("argument-39")
    assert lines[start + 3 : start + 6] == ["    env.A: ${B}", "  b", "    url: https://h/"]


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
