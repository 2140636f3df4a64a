"""An authorization server that signs access tokens, and settings that accept them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.signing_keys import SigningKeys
from onetool_team.settings import Http
from team.auth.forged_tokens import Forge, accepting, forge_of


@pytest.fixture
def issuer() -> Iterator[LoopbackAuthorizationServer]:
    """An authorization server that nobody has asked yet."""
    with LoopbackAuthorizationServer() as server:
        server.issuing.signing = SigningKeys()
        yield server


@pytest.fixture(scope="module")
def standing() -> Iterator[LoopbackAuthorizationServer]:
    """An authorization server for all tests of a file: who counts what it was asked counts from the start."""
    with LoopbackAuthorizationServer() as server:
        server.issuing.signing = SigningKeys()
        yield server


@pytest.fixture
def http(issuer: LoopbackAuthorizationServer) -> Http:
    """Settings that accept its tokens."""
    return accepting(issuer)


@pytest.fixture
def forge(issuer: LoopbackAuthorizationServer) -> Forge:
    """What makes tokens of it, good ones and others."""
    return forge_of(issuer)
