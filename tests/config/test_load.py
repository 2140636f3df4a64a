"""Loading: precedence, includes, what a project may not do, expansion, and errors in words."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.desk import Desk
from ot.config.load import load_config
from ot.config.models import Config, Limits
from ot.errors import ConfigError
from pace import PATIENCE, effort


def refusal(desk: Desk) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        desk.load()
    return caught.value


# ---------------------------------------------------------------- precedence


def test_without_any_file_the_defaults_hold(desk: Desk) -> None:
    loaded = desk.load()
    assert Config() == loaded.config
    assert (loaded.project_state, loaded.files, loaded.warnings) == ("none", (), ())
    assert desk.user == loaded.state_dir


def test_a_trusted_project_is_laid_over_the_users_settings_key_by_key(desk: Desk) -> None:
    user = desk.write_user("aliases: {a: x.one, b: x.two}\noutput: {preview_lines: 3, max_inline_size: 9}\n")
    project = desk.write_project("aliases: {b: y.two, c: y.three}\noutput: {preview_lines: 5}\n")
    desk.trust_project()
    loaded = desk.load()
    assert loaded.config.aliases == {"a": "x.one", "b": "y.two", "c": "y.three"}
    assert (loaded.config.output.preview_lines, loaded.config.output.max_inline_size) == (5, 9)
    assert (user, project) == loaded.files
    assert (loaded.project_state, loaded.results_dir) == ("trusted", desk.project / "tmp")


def test_lists_are_replaced_not_joined(desk: Desk) -> None:
    desk.write_user("tools: {p: {names: [a, b]}}\n")
    desk.write_project("tools: {p: {names: [c]}}\n")
    desk.trust_project()
    assert desk.load().config.tools == {"p": {"names": ["c"]}}


def test_alias_is_read_as_aliases_and_merges_with_it(desk: Desk) -> None:
    desk.write_user("alias: {a: x.one}\n")
    desk.write_project("aliases: {b: x.two}\n")
    desk.trust_project()
    assert desk.load().config.aliases == {"a": "x.one", "b": "x.two"}


def test_alias_and_aliases_together_are_refused(desk: Desk) -> None:
    desk.write_user("version: 1\naliases: {a: x.one}\nalias: {b: x.two}\n")
    assert (refusal(desk).line, "same setting" in str(refusal(desk))) == (3, True)


def test_both_forms_of_a_project_are_read_and_merge(desk: Desk) -> None:
    desk.write_user("projects: {a: ~/a, b: {path: /b, attrs: {k: v}}}\n")
    desk.write_project("projects: {a: {attrs: {k: 1}}, b: /c}\n")
    desk.trust_project()
    projects = desk.load().config.projects
    assert (Path("~/a"), {"k": 1}) == (projects["a"].path, projects["a"].attrs)
    assert (Path("/c"), {"k": "v"}) == (projects["b"].path, projects["b"].attrs)


def test_what_no_layer_gives_is_missing_and_named(desk: Desk) -> None:
    desk.write_user("version: 1\nsnippets:\n  hello:\n    description: x\n")
    error = refusal(desk)
    assert (error.message, error.line) == ("snippets.hello.body is missing", 3)


def test_a_section_with_all_its_lines_commented_out_changes_nothing(desk: Desk) -> None:
    desk.write_user("policy: {deny: [vault.*]}\n")
    desk.write_project("policy:\n#  deny: []\n")
    desk.trust_project()
    assert desk.load().config.policy.deny == ("vault.*",)


def test_in_the_home_directory_there_is_no_project(desk: Desk) -> None:
    home = Desk(desk.user.parent, desk.user)
    home.write_user("logs: {level: DEBUG}\n")
    loaded = home.load()
    assert (loaded.project_state, loaded.config.logs.level) == ("none", "DEBUG")


# ---------------------------------------------------------------- includes


def test_includes_are_laid_left_to_right_under_the_files_own_keys(desk: Desk) -> None:
    desk.write_user("include: [one.yaml, more/two.yaml]\naliases: {d: own.d}\n")
    desk.write_user("aliases: {a: one.a, b: one.b, d: one.d}\n", "one.yaml")
    desk.write_user("include: [three.yaml]\naliases: {b: two.b}\n", "more/two.yaml")
    desk.write_user("aliases: {b: three.b, c: three.c}\n", "more/three.yaml")
    loaded = desk.load()
    assert loaded.config.aliases == {"a": "one.a", "b": "two.b", "c": "three.c", "d": "own.d"}
    assert [file.relative_to(desk.user).as_posix() for file in loaded.files] == [
        "onetool.yaml",
        "one.yaml",
        "more/two.yaml",
        "more/three.yaml",
    ]


def test_an_error_in_an_included_file_names_that_file(desk: Desk) -> None:
    desk.write_user("include: [one.yaml]\n")
    one = desk.write_user("version: 1\n\nlimits: {cals: 1}\n", "one.yaml")
    error = refusal(desk)
    assert (one, 3) == (error.file, error.line)


@pytest.mark.parametrize(
    "name",
    ["../x.yaml", "/etc/passwd", "~/x.yaml", "a/../../x.yaml", "..", "", "..\\x.yaml", "../../../../etc/passwd"],
)
def test_an_include_may_not_leave_the_directory(name: str, desk: Desk) -> None:
    desk.write_user(f"version: 1\ninclude:\n  - '{name}'\n")
    error = refusal(desk)
    assert (error.line, "may not be included" in str(error)) == (3, True)


def test_a_missing_include_is_an_error_with_its_line(desk: Desk) -> None:
    desk.write_user("version: 1\ninclude:\n  - here.yaml\n  - gone.yaml\n")
    desk.write_user("version: 1\n", "here.yaml")
    error = refusal(desk)
    assert (error.line, "gone.yaml" in str(error)) == (4, True)


def test_a_circle_of_includes_is_an_error_that_shows_it(desk: Desk) -> None:
    desk.write_user("include: [a.yaml]\n")
    desk.write_user("include: [b.yaml]\n", "a.yaml")
    file = desk.write_user("version: 1\ninclude: [a.yaml]\n", "b.yaml")
    error = refusal(desk)
    assert (file, 2) == (error.file, error.line)
    assert "onetool.yaml -> a.yaml -> b.yaml -> a.yaml" in str(error)


def test_a_file_that_includes_itself_is_a_circle(desk: Desk) -> None:
    desk.write_user("include: [./onetool.yaml]\n")
    assert "circular" in str(refusal(desk))


def test_includes_that_double_at_every_step_are_bounded(desk: Desk) -> None:
    desk.write_user("include: [f0.yaml, f0.yaml]\n")
    for number in range(30):
        desk.write_user(f"include: [f{number + 1}.yaml, f{number + 1}.yaml]\n", f"f{number}.yaml")
    desk.write_user("version: 1\n", "f30.yaml")
    with effort() as spent:
        assert "more than 100 files" in str(refusal(desk))
    assert spent.loops < 400


def test_a_project_cannot_include_a_file_that_is_not_hashed(desk: Desk) -> None:
    desk.write_project("include: [tmp/x.yaml]\n")
    desk.write_project("version: 1\n", "tmp/x.yaml")
    with pytest.raises(ConfigError, match=r"no file 'tmp/x\.yaml'"):
        desk.load(trust_project=True)


# ---------------------------------------------------------------- a project only tightens


def test_what_either_side_denies_is_denied(desk: Desk) -> None:
    desk.write_user("policy: {deny: [vault.*, a.b]}\n")
    desk.write_project("policy: {deny: [a.b, c.d]}\n")
    desk.trust_project()
    assert desk.load().config.policy.deny == ("vault.*", "a.b", "c.d")


def test_an_empty_list_of_a_project_lifts_no_denial(desk: Desk) -> None:
    desk.write_user("policy: {deny: [vault.*]}\n")
    desk.write_project("policy: {deny: []}\n")
    desk.trust_project()
    assert desk.load().config.policy.deny == ("vault.*",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("limits: {run_seconds: 121}", "limits.run_seconds may not be raised by a project: 121 is above 120"),
        ("limits: {memory_mb: 4096}", "limits.memory_mb"),
        ("output: {max_total_bytes: 9000000000}", "output.max_total_bytes"),
        ("security: {sanitize: opt-in}", "security.sanitize may not be loosened by a project: it is 'untrusted'"),
        ("engines: {portable: {processes: 1}}", "engines may not be set by a project"),
        ("security: {roots: [/]}", "security.roots may not be set by a project"),
        ("security: {roots: []}", "security.roots may not be set by a project"),
        ("security: {internal_hosts: [localhost]}", "security.internal_hosts may not be set by a project"),
        ("tools: {web: {internal_hosts: [localhost]}}", "tools.web.internal_hosts may not be set by a project"),
        ("output: {result_store_dir: tools}", "output.result_store_dir must be below"),
        ("secrets_file: ../../secrets.yaml", "secrets_file must be inside"),
        ("secrets_file: ~/.onetool/secrets.yaml", "secrets_file must be inside"),
        ("secrets_file: /etc/passwd", "secrets_file must be inside"),
    ],
)
def test_a_project_that_would_loosen_something_is_refused(line: str, words: str, desk: Desk) -> None:
    desk.write_user("security: {sanitize: untrusted}\n")
    file = desk.write_project(f"version: 1\n{line}\n")
    desk.trust_project()
    error = refusal(desk)
    assert (file, 2) == (error.file, error.line)
    assert words in str(error)


def test_all_that_a_project_would_loosen_is_named_at_once(desk: Desk) -> None:
    desk.write_project("limits:\n  calls: 2000\n  run_seconds: 500\nengines: {}\n")
    desk.trust_project()
    assert len(refusal(desk).message.splitlines()) == 3


def test_a_project_may_tighten_limits(desk: Desk) -> None:
    desk.write_user("limits: {run_seconds: 300}\n")
    desk.write_project("limits: {run_seconds: 200}\nsecurity: {sanitize: always}\noutput: {result_store_dir: tmp/r}\n")
    desk.trust_project()
    config = desk.load().config
    assert (
        config.limits.run_seconds,
        config.security.sanitize,
        config.output.result_store_dir,
    ) == (200, "always", "tmp/r")


LEVELS = ("opt-in", "untrusted", "always")
LIMITS = st.dictionaries(st.sampled_from(["calls", "memory_mb", "run_seconds"]), st.integers(16, 1000))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LIMITS, LIMITS, st.sampled_from(LEVELS), st.sampled_from(LEVELS))
def test_no_project_ever_loosens_a_limit(
    desk: Desk, user: dict[str, int], project: dict[str, int], level: str, wanted: str
) -> None:
    desk.write_user(f"limits: {user}\nsecurity: {{sanitize: {level}}}\n")
    before = desk_without_project(desk)
    desk.write_project(f"limits: {project}\nsecurity: {{sanitize: {wanted}}}\n")
    desk.trust_project()
    try:
        after = desk.load().config
    except ConfigError:
        return
    assert all(getattr(after.limits, key) <= getattr(before.limits, key) for key in Limits.model_fields)
    assert LEVELS.index(after.security.sanitize) >= LEVELS.index(before.security.sanitize)


def desk_without_project(desk: Desk) -> Config:
    return Desk(desk.user.parent, desk.user).load().config


# ---------------------------------------------------------------- expansion


def test_secrets_and_the_environment_are_put_into_packs_settings(desk: Desk) -> None:
    desk.environment = {"FROM_ENV": "env-value", "TOKEN": "shadowed"}
    desk.write_user("TOKEN: secret-value\n", "secrets.yaml")
    desk.write_user('tools: {p: {a: "${TOKEN}", b: ["x-${FROM_ENV}-y"], c: "${NONE:-d}", e: "${NONE:-}"}}\n')
    assert desk.load().config.tools == {"p": {"a": "secret-value", "b": ["x-env-value-y"], "c": "d", "e": ""}}


def test_project_attributes_take_secrets_but_not_the_environment(desk: Desk) -> None:
    desk.environment = {"FROM_ENV": "env-value"}
    desk.write_user("TOKEN: secret-value\n", "secrets.yaml")
    desk.write_user('projects: {s: {path: /s, attrs: {t: "${TOKEN}"}}}\n')
    assert desk.load().config.projects["s"].attrs == {"t": "secret-value"}
    desk.write_user('projects: {s: {path: /s, attrs: {t: "${FROM_ENV}"}}}\n')
    assert "projects.s.attrs.t needs FROM_ENV" in str(refusal(desk))


def test_a_missing_variable_is_named_with_its_key_and_line(desk: Desk) -> None:
    desk.write_user('version: 1\ntools:\n  p:\n    a: "${GONE}"\n    b: "${LOST}"\n')
    error = refusal(desk)
    assert (error.line, "tools.p.a needs GONE" in str(error)) == (4, True)
    assert "tools.p.b needs LOST" in str(error)


def test_keys_bodies_and_other_forms_of_variables_are_not_expanded(desk: Desk) -> None:
    desk.environment = {"X": "expanded"}
    desk.write_user(
        'projects: {s: "/${X}/s"}\nsnippets: {h: {body: "${X}"}}\ntools: {p: {"${X}": "$X ${a b} ${env:X}"}}\n'
    )
    config = desk.load().config
    assert (Path("/${X}/s"), "${X}") == (config.projects["s"].path, config.snippets["h"].body)
    assert config.tools == {"p": {"${X}": "$X ${a b} ${env:X}"}}


def test_what_a_secret_holds_is_not_expanded_again(desk: Desk) -> None:
    desk.write_user("A: ${B}\nB: inner-value\n", "secrets.yaml")
    desk.write_user('tools: {p: {a: "${A}"}}\n')
    assert desk.load().config.tools == {"p": {"a": "${B}"}}


def test_a_project_cannot_take_the_users_secrets_or_environment(desk: Desk) -> None:
    desk.environment = {"FROM_ENV": "env-value"}
    desk.write_user("TOKEN: users-token\n", "secrets.yaml")
    desk.write_project('tools: {p: {a: "${TOKEN}", b: "${FROM_ENV}"}}\n')
    desk.trust_project()
    error = refusal(desk)
    assert "tools.p.a needs TOKEN" in str(error)
    assert "tools.p.b needs FROM_ENV" in str(error)
    assert "users-token" not in str(error)


def test_each_side_expands_with_its_own_secrets(desk: Desk) -> None:
    desk.write_user("TOKEN: users-token\n", "secrets.yaml")
    desk.write_project("TOKEN: projects-token\n", "secrets.yaml")
    desk.write_user('tools: {mine: {t: "${TOKEN}"}}\n')
    desk.write_project('tools: {theirs: {t: "${TOKEN}"}}\n')
    desk.trust_project()
    assert desk.load().config.tools == {"mine": {"t": "users-token"}, "theirs": {"t": "projects-token"}}


# ---------------------------------------------------------------- errors in words


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("versoin: 1\n", 1, "unknown key 'versoin', did you mean 'version'?"),
        ("limits:\n  cals: 5\n", 2, "unknown key 'limits.cals', did you mean 'calls'?"),
        ("snippets:\n  h:\n    bdy: x\n", 3, "unknown key 'snippets.h.bdy', did you mean 'body'?"),
        ("snippets: {h: {body: x, params: {p: {requird: true}}}}\n", 1, "did you mean 'required'?"),
        ("zzz: 1\n", 1, "Known keys: aliases, background, chat, daemon, docs_url, engines"),
        ("version: one\n", 1, "version must be a whole number, not the text 'one'"),
        ("version: 1.0\n", 1, "version must be a whole number, not 1.0"),
        ("version: 99\nnewkey: 1\n", 1, "version 99 needs a newer release"),
        ("output:\n  max_inline_size: -1\n", 2, "output.max_inline_size must be 0 or more, not -1"),
        ("limits: {run_seconds: 0}\n", 1, "limits.run_seconds must be above 0, not 0"),
        ("limits: {run_seconds: true}\n", 1, "limits.run_seconds must be a number, not true"),
        ("logs: {level: true}\n", 1, "logs.level must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR', not true"),
        (f"secrets_file: [{'x' * 9}]\n", 1, "secrets_file must be text, not a list"),
        (f"security: {{sanitize: {'y' * 90}}}\n", 1, f"not the text '{'y' * 40}'..."),
        ("limits: {calls: 99999999}\n", 1, "limits.calls must be 1,000,000 or less"),
        ("output: {result_ttl: .nan}\n", 1, "must be a finite number, not nan"),
        ("security: {sanitize: never}\n", 1, "'opt-in', 'untrusted' or 'always', not the text 'never'"),
        ("policy: {deny: vault}\n", 1, "policy.deny must be a list, not the text 'vault'"),
        ("policy:\n  deny:\n    - a.b\n    - vault\n", 4, "'vault' matches no tool: write 'vault.*'"),
        (
            "policy:\n  deny:\n    - git-hub.drop-*\n",
            3,
            "matches no tool: names have '_' for any other sign: write 'git_hub.drop_*'",
        ),
        ("policy:\n  deny:\n    - git.hub.*\n", 3, "write 'git_hub.*'"),
        ("policy: {deny: [1]}\n", 1, "policy.deny.0 must be text, not 1"),
        ("limits: 5\n", 1, "limits must be keys with values, not 5"),
        ("limits: [a]\n", 1, "limits must be keys with values, not a list"),
        ("aliases:\n  a: x.y\n  print: x.y\n", 3, "'print' cannot be an alias"),
        ("aliases:\n  a: x.y\n  b: c\n", 3, "must name a tool as pack.function, not 'c'"),
        ("projects:\n  a: /x\n  list: /x\n", 3, "proj.list is a function"),
        ("projects: {a: 1}\n", 1, "projects.a must be keys with values, not 1"),
        ("snippets: {a-b: {body: x}}\n", 1, "cannot be a snippet's name"),
        ("tools: {p: 1}\n", 1, "tools.p must be keys with values, not 1"),
        ("include: a.yaml\n", 1, "include must be a list, not the text 'a.yaml'"),
        ("output: {result_store_dir: ../x}\n", 1, "without '..'"),
        ("policy: {deny: }\n", 1, "policy.deny must be a list, not nothing"),
    ],
)
def test_a_wrong_setting_is_explained_in_words(text: str, line: int, words: str, desk: Desk) -> None:
    file = desk.write_user(text)
    error = refusal(desk)
    assert words in str(error)
    assert (file, line) == (error.file, error.line)
    assert str(error).startswith(f"{file}:{line}: ")
    assert "Input should" not in str(error)


def test_all_problems_of_a_file_are_named_in_the_order_of_its_lines(desk: Desk) -> None:
    file = desk.write_user("logs: {level: LOUD}\nversoin: 1\nlimits:\n  calls: 0\n")
    lines = str(refusal(desk)).splitlines()
    assert [f"{file}:1", f"{file}:2", f"{file}:4"] == [line.split(": ")[0] for line in lines]


def test_of_a_newer_format_only_the_version_is_named(desk: Desk) -> None:
    desk.write_user("newkey: 1\nversion: 99\n")
    error = refusal(desk)
    assert (error.line, "newkey" in str(error)) == (2, False)


def test_at_most_twenty_problems_are_named(desk: Desk) -> None:
    desk.write_user("".join(f"zz{number}: 1\n" for number in range(30)))
    lines = str(refusal(desk)).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 10 more")


GOOD = (
    "# note\n",
    "\n",
    "limits:\n  calls: 5\n",
    "aliases:\n  a: b.c\n",
    "secrets_file: 'é😀\u2028.yaml'\n",
    "snippets:\n  s:\n    body: |\n      one\n\n      two\n",
    "output: {preview_lines: 3}\n",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(GOOD), unique=True), st.sampled_from(["\n", "\r\n"]), st.integers(0, 7))
def test_the_line_of_a_bad_key_is_reported_wherever_it_stands(desk: Desk, good: list[str], end: str, at: int) -> None:
    before, after = "".join(good[:at]), "".join(good[at:])
    desk.write_user(f"{before}logs:\n  levle: INFO\n{after}".replace("\n", end))
    error = refusal(desk)
    assert before.count("\n") + 2 == error.line
    assert "did you mean 'level'?" in str(error)


# ---------------------------------------------------------------- files that are not as they should be


def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(desk: Desk) -> None:
    desk.user.mkdir(parents=True)
    os.mkfifo(desk.user / "onetool.yaml")
    assert "not a regular file" in str(refusal(desk))


def test_a_directory_in_the_place_of_a_file_is_refused(desk: Desk) -> None:
    (desk.user / "onetool.yaml").mkdir(parents=True)
    assert "cannot be read" in str(refusal(desk))


def test_a_hundred_megabytes_are_refused_without_being_read(desk: Desk) -> None:
    file = desk.write_user("version: 1\n")
    os.truncate(file, 100_000_000)
    with effort() as spent:
        assert "1,048,576" in str(refusal(desk))
    assert spent.loops < 400


def test_a_file_that_everyone_can_write_is_warned_of(desk: Desk) -> None:
    desk.write_user("version: 1\n").chmod(0o666)
    (warning,) = desk.load().warnings
    assert "can be written by every user: run chmod o-w" in warning


def test_a_file_that_is_being_saved_is_refused_or_read_whole(desk: Desk) -> None:
    text = "policy: {deny: [vault.*]}\n"
    file = desk.write_user(text)
    stop = threading.Event()

    def save_again_and_again() -> None:
        while not stop.is_set():
            # As an editor does it: truncated first, then written.
            file.write_text(text)

    editor = threading.Thread(target=save_again_and_again)
    editor.start()
    try:
        seen = [denied_or_refused(desk) for _ in range(300)]
    finally:
        stop.set()
        editor.join(PATIENCE)
    assert not editor.is_alive()
    assert {("vault.*",), None} >= set(seen)
    assert denied_or_refused(desk) == ("vault.*",)


def denied_or_refused(desk: Desk) -> tuple[str, ...] | None:
    try:
        return desk.load().config.policy.deny
    except ConfigError:
        return None


def test_a_failed_reload_leaves_the_old_picture_as_it_was(desk: Desk) -> None:
    desk.write_user("aliases: {a: x.y}\n")
    old = desk.load()
    desk.write_user("aliases: {a: x.y\n")
    refusal(desk)
    assert old.config.aliases == {"a": "x.y"}


# ---------------------------------------------------------------- what a repository may not steer


def test_variables_of_installers_that_name_a_place_in_the_working_directory_are_not_used(desk: Desk) -> None:
    work, elsewhere = desk.paths.cwd, desk.paths.cwd.parent / "elsewhere"
    link = desk.paths.cwd.parent / "link"
    link.symlink_to(work)
    steering = {
        "UV_CACHE_DIR": f"{work}/cache",
        "UV_PYTHON": f"{link}/python",
        "UV_CONFIG_FILE": f"{elsewhere}/../{work.name}/uv.toml",
        "UV_FIND_LINKS": f"{elsewhere} {work}/wheels",
        "UV_INDEX": f"mine=file://{work}/index",
        "UV_DEFAULT_INDEX": f"file://localhost{work}/index",
        "NPM_CONFIG_USERCONFIG": f"{work}/.npmrc",
        "NPM_CONFIG_NODE_OPTIONS": f"--no-warnings --require={work}/evil.js",
        "npm_config_script_shell": f"{link}/sh",
        "PIP_CONFIG_FILE": f"{work}/pip.conf",
        "PIP_FIND_LINKS": f"https://index.example/x {work}/wheels",
        "XDG_CACHE_HOME": str(work),
    }
    kept = {"UV_INDEX_URL": "https://index.example/x", "UV_LINK_MODE": "copy", "A": str(work)}
    kept |= {"NPM_CONFIG_REGISTRY": f"https://registry.example{work}", "PIP_INDEX_URL": "https://index.example/y"}
    kept["UV_TOOL_DIR"] = f"{elsewhere}/t"
    loaded = replace(desk, environment=steering | kept).load()
    assert loaded.secrets.environment == kept
    assert [warning.split()[0] for warning in loaded.warnings] == sorted(steering)


def test_where_the_home_directory_is_below_the_working_directory_uv_keeps_its_places(desk: Desk) -> None:
    given = {"UV_CACHE_DIR": "/data/uv"}
    paths = replace(desk.paths, cwd=Path("/"), environ=given)
    assert load_config(paths, desk.trust).secrets.environment == given
