"""A server's settings become something that can be started: with its secrets, and with nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.desk import Desk
from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.secrets import Secrets
from ot.proxied.spec import ServerSpec, resolve_spec, resolve_specs, why_not_startable

PATHS = Paths.of(Path("/srv/work"), Path("/home/me/.onetool"))
SECRETS = Secrets({"MINE": "my-secret"}, {"THEIRS": "project-secret"}, {"HOME": "/home/me", "FROM_ENV": "env-secret"})


def spec(
    of_project: bool = False, granted: tuple[str, ...] = (), secrets: Secrets = SECRETS, **given: Any
) -> ServerSpec:
    project = PATHS.cwd / ".onetool" if of_project else None
    return resolve_spec("s", Server.model_validate(given), secrets, PATHS, project, granted=granted)


def test_references_are_filled_in_everywhere() -> None:
    made = spec(
        command="${MINE}",
        args=["a-${MINE}-b", "${NONE:-text}"],
        cwd="/sub/${MINE}",
        env={"A": "${MINE}", "B": "${FROM_ENV}"},
    )
    assert (made.command, made.args, made.cwd) == ("my-secret", ("a-my-secret-b", "text"), "/sub/my-secret")
    assert made.env == {"HOME": "/home/me", "A": "my-secret", "B": "env-secret"}
    assert made.problem == ""
    http = spec(url="https://h/${MINE}", headers={"Authorization": "Bearer ${MINE}"})
    assert (http.url, http.headers) == ("https://h/my-secret", {"Authorization": "Bearer my-secret"})


@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ({"command": "uvx", "args": ["mcp-server-fetch"]}, "workspace"),
        ({"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}, "private"),
        ({"command": "npx", "args": ["chrome-devtools-mcp"]}, "private"),
        ({"command": "npx", "args": ["@modelcontextprotocol/server-sequential-thinking"]}, "private"),
        ({"command": "npx", "args": ["@playwright/mcp"], "scope": "shared"}, "shared"),
    ],
)
def test_a_server_that_is_known_to_keep_state_is_private_unless_its_user_says_otherwise(
    given: dict[str, Any], scope: str
) -> None:
    assert spec(**given).scope == scope


@pytest.mark.parametrize("given", [{"cwd": "${workspace}"}, {"args": ["${workspace}"]}, {"env": {"A": "${workspace}"}}])
def test_a_server_that_all_share_cannot_refer_to_one_workspace(given: dict[str, Any]) -> None:
    assert "servers.s.scope is shared" in spec(command="/bin/x", scope="shared", **given).problem
    assert "scope" not in spec(command="/bin/x", **given).problem


@pytest.mark.parametrize(
    ("given", "transport"),
    [
        ({"url": "https://h/"}, ""),
        ({"url": "https://h/", "type": "http"}, "http"),
        ({"url": "https://h/", "type": "sse"}, "sse"),
        ({"command": "x", "type": "stdio"}, ""),
    ],
)
def test_the_transport_is_found_out_unless_the_settings_say_it(given: dict[str, Any], transport: str) -> None:
    assert spec(**given).transport == transport


def test_a_server_of_the_older_transport_needs_an_address() -> None:
    with pytest.raises(ValueError, match="a server of type sse needs a url"):
        spec(type="sse", command="x")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"command": "${FROM_ENV}"}, "command"),
        ({"command": "x", "args": ["a", "${FROM_ENV}"]}, "args.1"),
        ({"command": "x", "cwd": "${FROM_ENV}"}, "cwd"),
        ({"url": "https://h/${FROM_ENV}"}, "url"),
        ({"url": "https://h/", "headers": {"X": "${FROM_ENV}"}}, "headers.X"),
    ],
)
def test_the_environment_is_looked_at_for_env_alone(given: dict[str, Any], field: str) -> None:
    assert (
        f"servers.s.{field} needs FROM_ENV, which is not set: add 'FROM_ENV: ...' to secrets.yaml"
        in spec(**given).problem
    )


def test_every_missing_value_is_named_and_none_is_shown() -> None:
    made = spec(command="x", args=["${MINE}"], env={"A": "${GONE}", "B": "${LOST}"})
    assert "env.A needs GONE" in made.problem
    assert "env.B needs LOST" in made.problem
    assert "my-secret" not in made.problem + repr(made.env and made.problem)


def test_another_clients_reference_is_not_passed_on_as_text() -> None:
    assert "${env:TOKEN} is not read here: write ${TOKEN}" in spec(command="x", env={"A": "${env:TOKEN}"}).problem
    assert "${input:pw} is not read here" in spec(command="x", env={"A": "${input:pw}"}).problem


def test_a_projects_server_gets_the_projects_secrets_alone() -> None:
    assert spec(True, command="x", env={"A": "${THEIRS}", "H": "${HOME}"}).env == {
        "HOME": "/home/me",
        "A": "project-secret",
        "H": "/home/me",
    }
    for name in ("MINE", "FROM_ENV"):
        made = spec(True, command="x", env={"A": f"${{{name}}}"})
        assert made.env["A"] == ""
        assert f"needs {name}" in made.problem
        assert "workers.packs.<pack>.secrets" in made.problem


def test_a_projects_server_gets_what_the_user_granted() -> None:
    made = spec(True, ("MINE", "FROM_ENV"), command="x", env={"A": "${MINE}", "B": "${FROM_ENV}"})
    assert (made.env, made.problem) == ({"HOME": "/home/me", "A": "my-secret", "B": "env-secret"}, "")


def test_a_users_server_never_gets_a_projects_value() -> None:
    secrets = Secrets({"KEY": "users"}, {"KEY": "projects"})
    assert spec(secrets=secrets, command="x", env={"A": "${KEY}"}).env == {"A": "users"}


def test_a_secret_that_makes_no_address_is_a_problem_without_its_value() -> None:
    link_local = spec(secrets=Secrets({"HOST": "169.254.169.254"}), url="http://${HOST}/mcp")
    assert "servers.s.url is not an address" in link_local.problem
    assert "169.254" not in link_local.problem


def test_package_runners_keep_where_packages_come_from_and_no_credential() -> None:
    environ = {
        "UV_INDEX_URL": "https://index/",
        "UV_INDEX_A_PASSWORD": "p",
        "UV_DEFAULT_INDEX": "https://u:p@index/",
        "NODE_EXTRA_CA_CERTS": "/ca.pem",
        "X": "y",
    }
    secrets = Secrets(environment=environ)
    assert spec(secrets=secrets, command="uvx").env == {"UV_INDEX_URL": "https://index/"}
    assert spec(secrets=secrets, command="npx").env == {"NODE_EXTRA_CA_CERTS": "/ca.pem"}
    assert spec(secrets=secrets, command="other").env == {}


def test_what_can_be_known_without_starting_is_said(tmp_path: Path) -> None:
    assert why_not_startable(ServerSpec("s", "s", command="sh", cwd=str(tmp_path))) == ""
    assert "no program 'no-such-program'" in why_not_startable(ServerSpec("s", "s", command="no-such-program"))
    assert "cwd is not a directory" in why_not_startable(ServerSpec("s", "s", command="sh", cwd=str(tmp_path / "gone")))
    assert "no program './sh'" in why_not_startable(ServerSpec("s", "s", command="./sh", cwd=str(tmp_path)))
    assert why_not_startable(ServerSpec("s", "s", problem="why")) == "why"
    assert why_not_startable(ServerSpec("s", "s", url="https://h/")) == ""


def test_a_program_that_would_be_found_beside_the_path_can_be_started(tmp_path: Path) -> None:
    found = tmp_path / ".local" / "bin" / "uvx-of-mine"
    found.parent.mkdir(parents=True)
    found.write_text("#!/bin/sh\n")
    found.chmod(0o755)
    environ = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    assert why_not_startable(ServerSpec("s", "s", command="uvx-of-mine", cwd=str(tmp_path), env=environ)) == ""


# ---------------------------------------------------------------- from files


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Desk(cwd, tmp_path / "home" / ".onetool", {"TOKEN": "environment-token"})


def test_disabled_servers_are_left_out_and_grants_are_the_users(desk: Desk) -> None:
    desk.write_user("servers: {mine: {command: sh, env: {T: '${TOKEN}'}}, off: {command: sh, enabled: false}}\n")
    desk.write_project("servers: {theirs: {command: sh, env: {T: '${TOKEN}'}}}\n")
    desk.trust_project()
    made = resolve_specs(desk.load(), desk.paths)
    assert made.keys() == {"mine", "theirs"}
    assert made["mine"].env["T"] == "environment-token"
    assert "needs TOKEN" in made["theirs"].problem
    desk.write_user("workers: {packs: {theirs: {secrets: [TOKEN]}}}\n")
    assert resolve_specs(desk.load(), desk.paths)["theirs"].env["T"] == "environment-token"


def test_what_a_server_is_given_is_redacted(desk: Desk) -> None:
    desk.write_user("servers: {mine: {command: sh, env: {T: '${TOKEN}'}}}\n")
    assert desk.load().secrets.redact("see environment-token") == "see [secret:TOKEN]"


def test_a_projects_server_takes_nothing_from_yours_of_the_same_name(desk: Desk) -> None:
    desk.write_user("servers: {gh: {url: 'https://good/', headers: {Authorization: 'Bearer ${KEY}'}}}\n")
    desk.write_user("KEY: users-own-key\n", "secrets.yaml")
    desk.write_project("servers: {gh: {url: 'https://evil/'}}\n")
    desk.trust_project()
    loaded = desk.load()
    made = resolve_specs(loaded, desk.paths)["gh"]
    assert (made.url, made.headers) == ("https://evil/", {})
    assert "the project's server 'gh' replaces yours of that name" in loaded.warnings
