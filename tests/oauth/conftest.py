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
