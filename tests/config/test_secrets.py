"""Secrets of the files and of many workspaces: filled in where they belong, and in no log."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ot_sdk.redaction
from config.desk import Desk
from ot.config.secrets import KEPT, IssuedSecrets, Secrets, SharedRedaction
from ot.errors import ConfigError
from ot_sdk.redaction import Redactor

CANARY = "canary-secret-7f3a"


def test_the_users_file_goes_before_the_environment_and_a_project_has_no_say() -> None:
    brought = {"A": "project-a", "D": "project-d"}
    secrets = Secrets({"A": "user-a", "B": "user-b"}, brought, {"A": "env-a", "B": "env-b", "C": "env-c"})
    assert [secrets.get(name) for name in "ABCD"] == ["user-a", "user-b", "env-c", None]


def test_the_files_are_read_and_named_but_not_the_whole_environment(desk: Desk) -> None:
    desk.environment = {"ELSE": "env-value", "USED": "env-used"}
    desk.write_user("TOKEN: abcdef\n", "secrets.yaml")
    desk.write_user('tools: {p: {a: "${USED}"}}\n')
    loaded = desk.load()
    assert loaded.secrets.names() == ("TOKEN", "USED")
    assert loaded.secrets.get("ELSE") == "env-value"
    assert desk.user / "secrets.yaml" in loaded.files


def test_a_secret_is_the_text_as_written(desk: Desk) -> None:
    desk.write_user("PIN: 0123456\nFLAG: true\nQUOTED: ' x '\nREF: ${NOT}\n", "secrets.yaml")
    secrets = desk.load().secrets
    assert [secrets.get(name) for name in ("PIN", "FLAG", "QUOTED", "REF")] == ["0123456", "true", " x ", "${NOT}"]


def test_another_file_may_be_named_relative_to_the_one_that_names_it(desk: Desk) -> None:
    desk.write_user("include: [team/config.yaml]\n")
    desk.write_user("secrets_file: keys.yaml\n", "team/config.yaml")
    desk.write_user("TOKEN: abcdef\n", "team/keys.yaml")
    assert desk.load().secrets.get("TOKEN") == "abcdef"


def test_the_user_may_keep_secrets_elsewhere(desk: Desk) -> None:
    elsewhere = desk.cwd / "keys.yaml"
    elsewhere.write_text("TOKEN: abcdef\n")
    elsewhere.chmod(0o600)
    desk.write_user(f"secrets_file: {elsewhere}\n")
    assert desk.load().secrets.get("TOKEN") == "abcdef"


def test_a_file_that_vanished_holds_no_secrets(desk: Desk) -> None:
    file = desk.write_user("TOKEN: abcdef\n", "secrets.yaml")
    assert desk.load().secrets.names() == ("TOKEN",)
    file.unlink()
    loaded = desk.load()
    assert (loaded.secrets.names(), loaded.warnings) == ((), ())


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_not_used_and_that_is_said(mode: int, desk: Desk) -> None:
    desk.write_user(f"TOKEN: {CANARY}\n", "secrets.yaml").chmod(mode)
    loaded = desk.load()
    (warning,) = loaded.warnings
    assert loaded.secrets.get("TOKEN") is None
    assert "can be read by other users and was not used: run chmod 600" in warning
    assert CANARY not in warning


def test_a_projects_secrets_file_is_never_followed_out_of_the_project(desk: Desk) -> None:
    desk.write_user(f"TOKEN: {CANARY}\n", "secrets.yaml")
    desk.write_project("version: 1\n")
    desk.trust_project()
    (desk.project / "secrets.yaml").symlink_to(desk.user / "secrets.yaml")
    loaded = desk.load()
    assert loaded.project_state == "changed"
    assert loaded.secrets.project == {}


def test_an_empty_value_is_warned_of(desk: Desk) -> None:
    desk.write_user("TOKEN:\nOTHER: ''\nGOOD: abcdef\n", "secrets.yaml")
    loaded = desk.load()
    assert loaded.secrets.names() == ("GOOD",)
    assert [warning.split()[0] for warning in loaded.warnings] == ["TOKEN", "OTHER"]


@pytest.mark.parametrize("empty", ["", "\n", "# none yet\n"])
def test_an_empty_file_holds_no_secrets(empty: str, desk: Desk) -> None:
    desk.write_user(empty, "secrets.yaml")
    assert desk.load().secrets.names() == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"A: x\nB: [{CANARY}]\n", 2),
        (f"A: x\nB: {{c: {CANARY}}}\n", 2),
        (f"A: x\nB-C: {CANARY}\n", 2),
        (f"A: x\nB: {CANARY}\nB: {CANARY}\n", 3),
        (f"A: x\nB: '{CANARY}\n", 3),
        (f"A: x\nB: &a {CANARY}\n", 2),
        (f"- {CANARY}\n", 1),
        (f"A: x\n{CANARY}\n", 3),
    ],
)
def test_a_broken_file_is_refused_without_showing_a_value(text: str, line: int, desk: Desk) -> None:
    file = desk.write_user(text, "secrets.yaml")
    with pytest.raises(ConfigError) as caught:
        desk.load()
    assert (file, line) == (caught.value.file, caught.value.line)
    assert CANARY not in str(caught.value)


def test_neither_secrets_nor_settings_that_hold_them_show_values(desk: Desk) -> None:
    desk.environment = {"FROM_ENV": CANARY + "-env"}
    desk.write_user(f"TOKEN: {CANARY}\n", "secrets.yaml")
    desk.write_user('tools: {p: {a: "${TOKEN}${FROM_ENV}"}}\nprojects: {s: {path: /s, attrs: {t: "${TOKEN}"}}}\n')
    loaded = desk.load()
    assert CANARY in str(loaded.config.tools)
    assert CANARY not in f"{loaded!r} {loaded} {loaded.secrets!r} {loaded.secrets} {loaded.config!r} {loaded.config}"


def test_known_values_are_redacted_in_every_shape_that_text_gives_them() -> None:
    value = 'pä"ss/word\n+1'
    secrets = Secrets({"TOKEN": value})
    shapes = [value, json.dumps(value), json.dumps(value, ensure_ascii=False), quote(value, safe="")]
    assert all("[secret:TOKEN]" in secrets.redact(f"<{shape}>") for shape in shapes)
    assert all("ss" not in secrets.redact(f"<{shape}>") for shape in shapes)


def test_the_longer_of_two_secrets_is_redacted_whole() -> None:
    secrets = Secrets({"SHORT": "abcdef", "LONG": "abcdefghij"})
    assert secrets.redact("abcdefghij abcdef") == "[secret:LONG] [secret:SHORT]"


def test_short_values_and_text_without_secrets_stay_as_they_are() -> None:
    assert Secrets({"A": "yes"}).redact("yes, yes") == "yes, yes"
    assert Secrets().redact("anything") == "anything"


def test_what_the_environment_holds_is_redacted_once_it_is_in_use() -> None:
    secrets = Secrets(environment={"KEY": "abcdef-env", "HOME": "/home/someone"})
    assert secrets.redact("abcdef-env") == "abcdef-env"
    assert secrets.using(["KEY", "HOME"]).redact("abcdef-env /home/someone") == "[secret:KEY] /home/someone"


VALUES = st.dictionaries(st.sampled_from("ABCDE"), st.text("0123456789", min_size=6, max_size=12), min_size=1)


@given(VALUES, st.lists(st.text("0123456789 ", max_size=5), min_size=6, max_size=6))
def test_no_redacted_text_holds_a_known_value(values: dict[str, str], gaps: list[str]) -> None:
    text = "".join(gap + value for gap, value in zip(gaps, values.values(), strict=False))
    redacted = Secrets(values).redact(text)
    assert not [value for value in values.values() if value in redacted]


def having(value: str) -> Secrets:
    return Secrets(user={"TOKEN": value})


def test_a_line_is_looked_through_as_often_for_a_thousand_workspaces_as_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, text = list[str](), Redactor.text

    def count(self: Redactor, line: str) -> str:
        looks.append(line)
        return text(self, line)

    redaction = SharedRedaction(IssuedSecrets())
    redaction.put("one", having("of-the-operator"))
    monkeypatch.setattr(Redactor, "text", count)
    assert "[secret:TOKEN]" == redaction.redact("of-the-operator")
    alone = len(looks)
    for number in range(1000):
        redaction.put(number, having("of-the-operator" if number % 2 else f"of-person-{number}"))
    looks.clear()
    assert "[secret:TOKEN] [secret:TOKEN]" == redaction.redact("of-person-998 of-the-operator")
    assert alone == len(looks)


def test_an_opening_makes_ready_no_secret_of_those_that_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made, init = list[str](), ot_sdk.redaction._Secret.__init__

    def count(self: ot_sdk.redaction._Secret, value: str, name: str) -> None:
        made.append(value)
        init(self, value, name)

    monkeypatch.setattr(ot_sdk.redaction._Secret, "__init__", count)
    redaction = SharedRedaction(IssuedSecrets())
    for number in range(20):
        redaction.put(number, having(f"of-person-{number}"))
    assert [f"of-person-{number}" for number in range(20)] == made


def test_a_reload_changes_what_is_taken_out() -> None:
    redaction = SharedRedaction(IssuedSecrets())
    redaction.put("one", having("the-first-value"))
    redaction.put("one", having("the-second-value"))
    assert "the-first-value [secret:TOKEN]" == redaction.redact("the-first-value the-second-value")


def test_secrets_of_the_last_closed_connections_are_still_redacted() -> None:
    redaction = SharedRedaction(IssuedSecrets())
    for number in range(KEPT + 1):
        redaction.put(number, having(f"of-person-{number:02}"))
        redaction.drop(number)
        redaction.put("command", having("of-a-command"))
        redaction.drop("command")
    line = redaction.redact("of-person-00 of-person-01 of-person-32 of-a-command")
    assert "of-person-00 of-person-01 [secret:TOKEN] [secret:TOKEN]" == line


def test_what_is_issued_to_anybody_is_taken_out_at_once() -> None:
    everybodys = IssuedSecrets()
    redaction, hers, his = SharedRedaction(everybodys), IssuedSecrets(everybodys), IssuedSecrets(everybodys)
    hers.add("server", "login of shop", ["issued-to-ann"])
    his.add("server", "login of shop", ["issued-to-bob"])
    assert "[secret:login of shop] [secret:login of shop]" == redaction.redact("issued-to-ann issued-to-bob")
    assert "issued-to-bob" == hers.redactor.text("issued-to-bob")
