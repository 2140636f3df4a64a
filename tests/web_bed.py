"""A workspace whose pack ``web`` may fetch from sites on loopback, for tests that go the whole way of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ot.workspace import Workspace
from run_app import running_app
from web_site import WebSite


class Web:
    """Programs that use the pack, each a run of its own."""

    def __init__(self, app: Workspace) -> None:
        self._app = app

    async def value(self, program: str, **values: Any) -> Any:
        """Return the value of *program*, in which *values* are known."""
        reply = await self._app.run(_with(program, values))
        assert not reply.is_error, reply.texts
        return reply.value

    async def error(self, program: str, **values: Any) -> str:
        """Return how *program* failed."""
        reply = await self._app.run(_with(program, values))
        assert reply.is_error, reply.value
        return reply.texts[-1]


def _with(program: str, values: dict[str, Any]) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()) + program


@asynccontextmanager
async def web(directory: Path, *sites: WebSite, **settings: Any) -> AsyncGenerator[Web]:
    """Yield what runs programs, allowed to fetch from *sites*, with *settings* of the pack."""
    allowed = [f"{site.host}:{site.port}" for site in sites]
    tools = {"web": {"internal_hosts": allowed, "pause_seconds": 0, **settings}}
    async with running_app(directory, config={"tools": tools}) as app:
        yield Web(app)
