"""Logins as settings name them, and their tokens in a private file."""

from __future__ import annotations

import json
import logging
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.principal import os_user
from ot.config.secrets import Secrets
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.login_state import login_state
from ot.proxied.auth.system_keyring import SystemKeyring
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import RecordUnreadable, TokenStore
from ot.proxied.spec import ServerSpec, resolve_spec

RECORD = TokenRecord("access-1234567890", 1000.0, 4600.0, "refresh-1234567890", client_secret="client-1234567890")


class Vault:
    """A keyring that keeps values in memory; it can be full, forgetful or locked."""

    def __init__(self, most: int = 100_000) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.most = most
        self.is_forgetful = False
        self.locked = threading.Event()
        self.locked.set()

    def set_password(self, service: str, key: str, value: str) -> None:
        self.locked.wait(5)
        if len(value) > self.most:
            raise ValueError("too long")
        self.values[service, key] = value

    def get_password(self, service: str, key: str) -> str | None:
        return None if self.is_forgetful else self.values.get((service, key))

    def delete_password(self, service: str, key: str) -> None:
        del self.values[service, key]


def keyring_of(backend: Any) -> SystemKeyring:
    return SystemKeyring(lambda: backend)


def backend_of(module: str, **more: Any) -> Any:
    """Return a keyring that claims to be one of the library's."""
    kind = type("Keyring", (Vault,), {"__module__": module})
    found = kind()
    vars(found).update(more)
    return found


@pytest.fixture
def account(tmp_path: Path) -> ServerAccount:
    return ServerAccount("notion", "https://mcp.notion.example/mcp", "uid:1", tmp_path / "logins")


def files_of(account: ServerAccount) -> str:
    return "".join(file.read_text() for file in account.directory.iterdir())


def test_a_keyring_that_keeps_what_it_is_given_holds_the_record_and_no_file_shows_a_token(account: ServerAccount):
    vault = Vault()
    TokenStore(account, keyring_of(vault)).write(RECORD)
    assert TokenStore(account, keyring_of(vault)).read() == RECORD
    assert not any(secret in files_of(account) for secret in RECORD.secrets)
    assert list(vault.values) == [("onetool", account.key)], "the probe is gone"
    assert TokenStore(account, keyring_of(vault)).place == "the system's keyring"
    TokenStore(account, keyring_of(vault)).delete()
    assert not vault.values and TokenStore(account, keyring_of(vault)).read() is None


@pytest.mark.parametrize(
    "backend",
    [
        backend_of("keyring.backends.fail"),
        backend_of("keyring.backends.null"),
        backend_of("keyrings.alt.file"),
        backend_of("keyring.backends.chainer", backends=[backend_of("keyrings.alt.file")]),
        backend_of("some.backend", is_forgetful=True),
        backend_of("some.backend", most=10),
    ],
    ids=["fail", "null", "plain file", "chain of a plain file", "forgetful", "full"],
)
def test_without_a_real_keyring_the_record_is_in_a_file_that_only_its_owner_reads(account: ServerAccount, backend: Any):
    account.directory.mkdir(mode=0o755)
    TokenStore(account, keyring_of(backend)).write(RECORD)
    assert TokenStore(account, keyring_of(None)).read() == RECORD
    assert not backend.values
    file = account.directory / f"{account.key}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(account.directory.stat().st_mode) == 0o700


def test_a_chain_of_keyrings_is_used_by_its_first_real_one(account: ServerAccount):
    real = backend_of("keyring.backends.SecretService")
    chain = backend_of("keyring.backends.chainer", backends=[backend_of("keyrings.alt.file"), real])
    TokenStore(account, keyring_of(chain)).write(RECORD)
    assert real.values and not chain.backends[0].values


def test_a_record_that_is_too_long_for_the_keyring_goes_into_the_file(account: ServerAccount):
    vault = Vault(most=100)  # the probe fits
    TokenStore(account, keyring_of(vault)).write(RECORD)
    assert TokenStore(account, keyring_of(vault)).read() == RECORD and not vault.values


def test_a_locked_keyring_is_not_waited_for_without_end(account: ServerAccount, monkeypatch: pytest.MonkeyPatch):
    vault = Vault()
    TokenStore(account, keyring_of(vault)).write(RECORD)
    monkeypatch.setattr("ot.proxied.auth.system_keyring.SECONDS", 0.05)
    vault.locked.clear()
    assert not keyring_of(vault).is_usable()
    vault.locked.set()

    def refuse(service: str, key: str) -> str:
        raise RuntimeError("locked")

    vault.get_password = refuse
    with pytest.raises(RecordUnreadable, match="locked"):
        TokenStore(account, keyring_of(vault)).read()
    assert login_state(account, keyring=keyring_of(vault)).state == "login needed"


def test_the_keyring_is_asked_again_only_when_another_process_has_written(account: ServerAccount):
    vault, asked = Vault(), list[str]()
    mine, theirs = TokenStore(account, keyring_of(vault)), TokenStore(account, keyring_of(vault))
    mine.write(RECORD)
    mine.read()
    get = vault.get_password
    vault.get_password = lambda service, key: asked.append(key) or get(service, key)
    assert mine.read() == mine.read() == RECORD and not asked
    newer = TokenRecord("access-newer-1234", 2000.0)
    theirs.write(newer)
    assert mine.read() == newer


def test_the_library_s_keyring_is_not_imported_until_a_record_is_written_or_read(account: ServerAccount):
    def refuse() -> None:
        raise AssertionError("asked for")

    store = TokenStore(account, SystemKeyring(refuse))
    assert store.read() is None and store.place


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kept": "file"}', '{"kept": "file", "record": {"access_token": 1}}'])
def test_a_file_that_holds_no_record_is_no_login_and_no_crash(account: ServerAccount, text: str):
    account.directory.mkdir()
    (account.directory / f"{account.key}.json").write_text(text)
    assert login_state(account).state == "login needed"


def test_a_login_is_locked_by_one_at_a_time_and_a_stuck_holder_is_overtaken(
    account: ServerAccount,
):
    first, second = TokenStore(account), TokenStore(account)
    with first.lock():
        begun = time.monotonic()
        with pytest.raises(TimeoutError), second.lock(0.05):
            pass
        assert time.monotonic() - begun >= 0.05
    with second.lock(0.05):
        pass


def test_every_token_is_redacted_in_every_form_as_soon_as_it_is_known():
    secrets = Secrets()
    account = ServerAccount("notion", "https://n.example/mcp", "me", Path("/nowhere"), issued=secrets.issued)
    odd = 'to"ken/+=é-123456'
    assert secrets.redact(f"Bearer {odd}") == f"Bearer {odd}"
    secrets.issued.add(account.key, "login of notion", [odd, "short"])
    for shown in (odd, json.dumps(odd), "to%22ken%2F%2B%3D%C3%A9-123456"):
        assert secrets.redact(f"<{shown}>").strip('<">') == "[secret:login of notion]"
    assert secrets.redact("short") == "short"
    for number in range(10):
        secrets.issued.add(account.key, "login of notion", [f"token-number-{number}"])
    assert "token-number-9" not in secrets.redact("token-number-9") and len(secrets.issued.redactor) < 10


def test_a_record_shows_no_token_when_it_is_printed_or_logged(caplog: pytest.LogCaptureFixture):
    account = ServerAccount("n", "https://n.example", "me", Path("/x"), client_secret="s" * 20, private_key="k" * 20)
    logging.getLogger("test").warning("%r %s", RECORD, account)
    shown = caplog.text + repr(RECORD) + repr(account)
    assert not any(secret in shown for secret in (*RECORD.secrets, "s" * 20, "k" * 20))


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
        ({"url": URL, "auth": {"pkce": "assumed"}}, "pkce: assumed requires issuer"),
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
