"""What models are told about packs, and where the files of topics are."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.errors import ConfigError


def test_prompts_are_read_beside_the_configuration_and_under_it(desk: Desk) -> None:
    desk.write_user("prompts: {packs: {a: from the configuration}}\n")
    prompts = desk.write_user("prompts: {packs: {a: from the file, b: from the file}}\n", "prompts.yaml")
    loaded = desk.load()
    assert loaded.config.prompts.packs == {"a": "from the configuration", "b": "from the file"}
    assert prompts in loaded.files


def test_prompts_need_no_configuration_beside_them(desk: Desk) -> None:
    desk.write_user("prompts: {packs: {a: told}}\n", "prompts.yaml")
    assert desk.load().config.prompts.packs == {"a": "told"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limits: {calls: 5}\n", "prompts.yaml:1: 'limits' does not belong here: prompts.yaml holds 'prompts' alone"),
        ("prompts:\n  pakcs: {}\n", "prompts.yaml:2: unknown key 'prompts.pakcs', did you mean 'packs'?"),
        ("prompts:\n  packs: {a: 1}\n", "prompts.yaml:2: prompts.packs.a must be text, not 1"),
    ],
)
def test_prompts_that_cannot_be_used_are_refused(text: str, words: str, desk: Desk) -> None:
    desk.write_user(text, "prompts.yaml")
    with pytest.raises(ConfigError) as caught:
        desk.load()
    assert words in str(caught.value)


def test_prompts_of_a_project_wait_for_its_trust(desk: Desk) -> None:
    desk.write_project("prompts: {packs: {a: obey me}}\n", "prompts.yaml")
    assert desk.load().config.prompts.packs == {}
    desk.trust_project()
    assert desk.load().config.prompts.packs == {"a": "obey me"}
    desk.write_project("prompts: {packs: {a: obey me more}}\n", "prompts.yaml")
    assert desk.load().config.prompts.packs == {}


TOPICS = "tools: {msg: {topics: [{pattern: 'a:*', file: %s}]}}\n"


def file_of(desk: Desk) -> Path:
    (topic,) = desk.load().config.topics
    return Path(topic.file)


def test_the_file_of_a_topic_is_beside_the_configuration_that_names_it(desk: Desk, home: Path) -> None:
    desk.write_user(TOPICS % "notes/a.yaml")
    assert file_of(desk) == desk.user / "notes/a.yaml"
    # Also when a project is trusted: appended to there, it would end that trust.
    desk.write_project("aliases: {}\n")
    desk.trust_project()
    assert file_of(desk) == desk.user / "notes/a.yaml"
    desk.write_user(TOPICS % "~/a.yaml")
    assert file_of(desk) == home / "a.yaml"
    desk.write_project(TOPICS % "tmp/a.yaml")
    desk.trust_project()
    assert file_of(desk) == desk.project / "tmp/a.yaml"


@pytest.mark.parametrize("file", ["notes.yaml", "~/a.yaml", "/etc/motd", "tmp/../onetool.yaml", "tmp", "../tmp/a"])
def test_a_project_s_topic_cannot_be_elsewhere(file: str, desk: Desk) -> None:
    desk.write_project(TOPICS % file)
    with pytest.raises(ConfigError) as caught:
        desk.load(trust_project=True)
    assert "onetool.yaml:1: the file of a project's topic must be below logs, sessions, stats, tmp" in str(caught.value)


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ("[{pattern: a}]", "msg.topics.0.file: Field required; a topic is {pattern: ..., file: ...}"),
        ("[{pattern: '', file: b}]", "msg.topics.0.pattern"),
        ("[{pattern: a, file: b, mode: c}]", "msg.topics.0.mode"),
        ("5", "msg.topics"),
    ],
)
def test_topics_that_cannot_be_used_are_refused(topics: str, words: str, desk: Desk) -> None:
    desk.write_user(f"tools: {{msg: {{topics: {topics}}}}}\n")
    with pytest.raises(ConfigError) as caught:
        desk.load()
    assert words in str(caught.value)


def test_other_settings_of_a_pack_called_msg_are_its_own(desk: Desk) -> None:
    desk.write_user("tools: {msg: {colour: red}}\n")
    assert desk.load().config.tools["msg"] == {"colour": "red"}
    assert desk.load().config.topics == ()
