"""What projects may set, what models are told about packs, and where the files of topics are."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk
from ot.config.project_rules import INSTALLS, RUNS_CODE
from ot.errors import ConfigError


def refused(desk: Desk, text: str) -> ConfigError:
    desk.write_project(text)
    with pytest.raises(ConfigError) as caught:
        desk.load(trust_project=True)
    return caught.value


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("command: '${CODE}'", "command"),
        ("command: sh, args: [-c, '${CODE:-print(1)}']", "args"),
        ("command: sh, args: ['--x=a${B}c']", "args"),
        ("command: sh, cwd: '${HOME}'", "cwd"),
        ("command: sh, cwd: '${workspace:-/}'", "cwd"),
        ("url: 'https://h/?t=${TOKEN}'", "url"),
    ],
)
def test_nothing_is_put_into_what_says_which_program_runs(desk: Desk, entry: str, key: str) -> None:
    desk.write_project("CODE: evil()\nTOKEN: abcdef\n", "secrets.yaml")
    error = refused(desk, f"version: 1\nservers:\n  mine: {{{entry}}}\n")
    assert (error.file, error.line) == (desk.project / "onetool.yaml", 3)
    assert f"servers.mine.{key} of a project's server may not refer to ${{" in str(error)
    assert "put the secret into env or headers" in str(error)


def test_the_workspace_and_secrets_of_env_and_headers_may_be_referred_to(desk: Desk) -> None:
    desk.write_project(
        "servers:\n  a: {command: sh, args: ['${workspace}/x'], cwd: '${workspace}', env: {TOKEN: '${T}'}}\n"
        "  b: {url: 'https://h/', headers: {Authorization: 'Bearer ${T}'}}\n"
    )
    assert desk.load(trust_project=True).servers_of_project == {"a", "b"}


def test_the_users_own_servers_may_still_refer_to_secrets_anywhere(desk: Desk) -> None:
    desk.write_user("servers: {a: {command: sh, args: ['--key', '${KEY}']}}\n")
    assert set(desk.load().config.servers) == {"a"}


@pytest.mark.parametrize(
    "name",
    [
        "NODE_OPTIONS",
        "LD_PRELOAD",
        "PYTHONPATH",
        "BASH_ENV",
        "PATH",
        "npm_config_script_shell",
        "UV_INDEX_URL",
        "UV_PYTHON",
        "PIP_CONFIG_FILE",
    ],
)
def test_a_variable_that_makes_programs_run_something_takes_no_secret(desk: Desk, name: str) -> None:
    error = refused(desk, f"servers:\n  a: {{command: sh, env: {{{name}: '${{X}}'}}}}\n")
    assert f"servers.a.env.{name} of a project's server may not refer to a secret" in str(error)
    desk.write_project(f"servers:\n  a: {{command: sh, env: {{{name}: written-out}}}}\n")
    assert desk.load(trust_project=True).servers_of_project == {"a"}


@pytest.mark.parametrize(
    "name",
    ["LDAP_PASSWORD", "NPM_TOKEN", "npm_config__authToken", "GIT_TOKEN", "NODE_AUTH_TOKEN", "UV_INDEX_MINE_PASSWORD"],
)
def test_a_variable_for_a_credential_is_no_such_variable(name: str) -> None:
    assert RUNS_CODE.fullmatch(name) is None
    assert INSTALLS.fullmatch(name) is None


@pytest.mark.parametrize("name", ["$(cmd)_KEY", "A B", "BASH_FUNC_x%%"])
def test_a_variables_name_is_one_that_a_variable_can_have(desk: Desk, name: str) -> None:
    assert "cannot be a variable's name" in str(
        refused(desk, f"servers:\n  a: {{command: sh, env: {{'{name}': x}}}}\n")
    )


@pytest.mark.parametrize(
    "file", ["~/.bash_profile", "../README.md", "/etc/x", "tmp/s.yaml", "logs/s.yaml", ".", "tools/../../x"]
)
def test_secrets_are_kept_among_the_hashed_files_of_the_project(desk: Desk, file: str) -> None:
    error = refused(desk, f"secrets_file: {file}\n")
    assert "secrets_file must be inside the project's .onetool directory" in str(error)


def test_a_secrets_file_of_another_name_is_hashed_and_used(desk: Desk) -> None:
    desk.write_project("secrets_file: private/mine.yaml\n")
    desk.write_project("TOKEN: abcdef\n", "private/mine.yaml")
    desk.trust_project()
    assert desk.load().secrets.project == {"TOKEN": "abcdef"}
    desk.write_project("TOKEN: other-one\n", "private/mine.yaml")
    assert desk.load().project_state == "changed"


def test_a_secret_that_came_later_does_not_change_what_a_trusted_project_runs(desk: Desk) -> None:
    desk.write_project("servers: {a: {command: sh, env: {A: '${CODE:-harmless}'}}}\n")
    desk.trust_project()
    desk.write_project("CODE: evil()\n", "secrets.yaml")
    loaded = desk.load()
    assert (loaded.project_state, loaded.secrets.project) == ("changed", {})


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
        (
            "limits: {calls: 5}\n",
            "prompts.yaml:1: 'limits' is not allowed here: prompts.yaml may contain only 'prompts'",
        ),
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
