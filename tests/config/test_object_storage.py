"""Where results are stored is the operator's to say, and its credentials are secrets."""

from __future__ import annotations

import pytest
from desk import Desk

from ot.config.load import load_config
from ot.errors import ConfigError

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
