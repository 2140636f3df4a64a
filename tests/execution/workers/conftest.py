"""uv with a cache of the session: packages are downloaded once, and nothing is left in the developer's own cache."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where uv keeps what it downloads, and the environments of scripts."""
    return str(tmp_path_factory.mktemp("uv-cache"))


@pytest.fixture
def server_environ(uv_cache: str) -> dict[str, str]:
    """The environment of a server, with secrets in it."""
    secrets = {"ANTHROPIC_API_KEY": "canary-1f6b", "OT_SECRET": "canary-1f6b", "PYTHONPATH": "/canary-1f6b"}
    return {**os.environ, **secrets, "UV_CACHE_DIR": uv_cache}
