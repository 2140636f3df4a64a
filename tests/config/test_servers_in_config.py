"""Servers and the policy in configuration files: what clashes, what a project may not do, what trust shows."""

from __future__ import annotations

import pytest

from config.desk import Desk
from ot.cli.terminal.trust_screen import Known, lines_of, screen_of
from ot.config.inventory import take_inventory
from ot.config.models import Config
from ot.errors import ConfigError


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
