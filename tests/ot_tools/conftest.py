"""uv with the machine's own cache, where packs' needs are installed once, and the services that packs ask."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from api_documents import documented_services
from api_services import ApiApp, ApiServer, api_app, serving, settings_of

from uv_outside import uv_cache_dir


@pytest.fixture(scope="session", autouse=True)
def uv_cache() -> Iterator[None]:
    """Let every server of these tests find what uv has downloaded and installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", uv_cache_dir())
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """The services of the web that packs ask, as they are documented."""
    with serving(documented_services()) as server:
        yield server


@pytest.fixture(scope="module")
async def app(
    request: pytest.FixtureRequest, server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[ApiApp]:
    """Runs programs whose packs ask that server, with the further settings that are ``MORE`` in the test's file."""
    more: dict[str, Any] = getattr(request.module, "MORE", {})
    async with api_app(tmp_path_factory.mktemp("api") / "app", settings_of(server), **more) as app:
        yield app
