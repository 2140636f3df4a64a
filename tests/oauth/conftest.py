"""The authorization server and the resource server of a test, each on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer


@pytest.fixture
def issuer() -> Iterator[LoopbackAuthorizationServer]:
    """An authorization server that nobody has asked yet."""
    with LoopbackAuthorizationServer() as server:
        yield server


@pytest.fixture
def resource(issuer: LoopbackAuthorizationServer) -> Iterator[LoopbackResourceServer]:
    """An MCP server that takes the tokens of the authorization server."""
    with LoopbackResourceServer(issuer) as server:
        yield server


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep records in files, here and in processes that a test starts: no test writes into a developer's keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
