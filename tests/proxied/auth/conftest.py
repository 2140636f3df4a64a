"""The authorization server and the resource server of the tests of logins, and no keyring of whoever runs them."""

from __future__ import annotations

import pytest

from oauth.conftest import issuer, resource

__all__ = ["issuer", "resource"]


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep records in files: the keyring of a developer's desk is not for tests."""
    monkeypatch.setattr("ot.proxied.auth.system_keyring._library_backend", _none)


def _none() -> None:
    raise RuntimeError("no keyring in tests")
