"""Secrets that are taken over never stand in the place of others."""

from __future__ import annotations

from ot.config.clients.server_secrets import with_own_secrets


def test_a_secret_gets_another_name_when_its_own_is_taken() -> None:
    entry, secrets = with_own_secrets("git", {"env": {"A": "${TOKEN}"}}, {"TOKEN": "new"}, {"TOKEN": "old"})
    assert (entry, secrets) == ({"env": {"A": "${GIT_TOKEN}"}}, {"GIT_TOKEN": "new"})


def test_a_secret_takes_no_name_that_another_has() -> None:
    kept = {"TOKEN": "old", "GIT_TOKEN": "older"}
    entry, secrets = with_own_secrets(
        "git", {"env": {"A": "${TOKEN}", "B": "${GIT_TOKEN_2}"}}, {"TOKEN": "new", "GIT_TOKEN_2": "two"}, kept
    )
    assert secrets == {"GIT_TOKEN_3": "new", "GIT_TOKEN_2": "two"}
    assert entry == {"env": {"A": "${GIT_TOKEN_3}", "B": "${GIT_TOKEN_2}"}}


def test_a_secret_that_is_kept_already_with_the_same_value_keeps_its_name() -> None:
    assert with_own_secrets("git", {"url": "${TOKEN}"}, {"TOKEN": "same"}, {"TOKEN": "same"})[1] == {"TOKEN": "same"}
