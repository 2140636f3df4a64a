"""uv with the machine's own cache: what packs in workers need is installed once, not once per home directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from uv_outside import uv_cache_dir


@pytest.fixture(scope="session", autouse=True)
def uv_cache() -> Iterator[None]:
    """Let every server of these tests find what uv has downloaded and installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", uv_cache_dir())
        yield
