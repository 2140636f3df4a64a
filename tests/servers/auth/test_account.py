"""What the settings say of a login, and which login that makes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.principal import os_user
from ot.config.secrets import Secrets
from ot.servers.spec import ServerSpec, resolve_spec

URL = "https://mcp.example.com/mcp"
MACHINE = {"grant": "client_credentials", "client_id": "robot", "issuer": "https://login.example.com"}


def resolved(auth: Any, secrets: Secrets | None = None, project: Path | None = None, url: str = URL) -> ServerSpec:
    server = Server.model_validate({"url": url, "auth": auth})
    return resolve_spec("reports", server, secrets or Secrets(), Paths(Path("/w"), None, Path("/u")), project)


def test_the_word_oauth_is_a_login_of_this_user_with_the_defaults_and_no_word_is_none():
    account = resolved("oauth").account
    assert account and (account.principal, account.grant, account.url) == (os_user(), "authorization_code", URL)
    assert account.redirect_uri == "http://127.0.0.1:41237/callback"
    assert account.directory == Path("/u/logins")
    assert resolved("none").account is None
    assert resolve_spec("r", Server(url=URL), Secrets(), Paths(Path("/w"), None, Path("/u"))).account is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": URL, "auth": "basic"}, "write oauth, none or keys"),
        ({"url": URL, "auth": {"client_secret": "x"}}, "client_secret needs a client_id"),
        ({"url": URL, "auth": {"pkce": "assumed"}}, "pkce: assumed needs the issuer"),
        ({"url": URL, "auth": {"private_key": "x"}}, "private_key needs grant: client_credentials"),
        ({"url": URL, "auth": {"grant": "client_credentials"}}, "needs client_id and issuer"),
        ({"url": URL, "auth": MACHINE}, "needs either client_secret or private_key"),
        ({"url": URL, "auth": {"scope": "x"}}, "auth.scope"),
        ({"url": URL, "auth": "oauth", "headers": {"authorization": "Bearer x"}}, "either auth or an Authorization"),
        ({"command": "sh", "auth": "oauth"}, "auth is for a server with a url"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_reason(settings: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as caught:
        Server.model_validate(settings)
    assert words in str(caught.value)


def test_a_client_secret_comes_from_the_secrets_and_is_redacted_also_where_it_was_written_out():
    secrets = Secrets({"ROBOT": "robot-secret-123"})
    account = resolved(MACHINE | {"client_secret": "${ROBOT}"}, secrets).account
    assert account and account.client_secret == "robot-secret-123"
    assert "needs ROBOT" in resolved(MACHINE | {"client_secret": "${ROBOT}"}).problem
    resolved(MACHINE | {"client_secret": "written-out-123"}, secrets)
    assert "written-out-123" not in secrets.redact("Basic written-out-123")


def test_a_project_s_server_gets_no_secret_of_the_user_and_has_a_login_of_its_own():
    secrets = Secrets({"ROBOT": "robot-secret-123"})
    assert "needs ROBOT" in resolved(MACHINE | {"client_secret": "${ROBOT}"}, secrets, Path("/w/.onetool")).problem
    own, project = resolved("oauth").account, resolved("oauth", project=Path("/w/.onetool")).account
    assert own and project and own.key != project.key


def test_a_login_is_another_for_another_address_and_principal_but_not_for_another_name():
    account = resolved("oauth").account
    other = resolved("oauth", url=f"{URL}/2").account
    assert account and other
    assert len({account.key, other.key, account.of("someone else").key}) == 3
    assert replace(account, server="renamed").key == account.key
