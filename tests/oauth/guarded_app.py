"""A workspace with the guarded server among its servers, and a client of it whose user opens addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from mcp_types import ElicitRequestURLParams

from free_ports import free_port
from oauth.browserless_user import BrowserlessUser
from oauth.resource_server import LoopbackResourceServer
from ot.proxied.auth.asked_logins import AskedLogins
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from run_app import running_app

ERAS = ("auto", "legacy")
DEADLINE = 0.6
"""Seconds that a run waits for a person who agreed; a login on loopback takes a tenth of it."""


def guarded_config(resource: LoopbackResourceServer, **auth: Any) -> dict[str, Any]:
    """Return settings with the guarded server, whose tools do not ask first."""
    server = {"url": resource.url, "auth": {"port": free_port(), **auth}}
    return {"servers": {"guarded": server}, "policy": {"allow": ["guarded.*"]}}


@asynccontextmanager
async def guarded_app(
    directory: Path, resource: LoopbackResourceServer, seconds: float = DEADLINE, **auth: Any
) -> AsyncGenerator[Workspace]:
    """Yield a workspace that waits no longer than *seconds* for a person who agreed to log in."""
    async with running_app(directory, config=guarded_config(resource, **auth)) as app:
        app.host.servers.logins = AskedLogins(seconds)
        yield app


def parallel(calls: int) -> str:
    """Return a program that makes *calls* calls at the same time and returns what they said, as numbers."""
    made = f"asyncio.gather(*[guarded.echo(text=str(i)) for i in range({calls})])"
    return f"import asyncio\n[int(said) for said in await {made}]"


class Person:
    """Who is asked by the client: agrees or not, and opens the address before, after, or never."""

    def __init__(self, answer: str = "accept", opens: str = "after", name: str = "ada") -> None:
        self._answer: Any = answer
        self._opens = opens
        self._user = BrowserlessUser(name)
        self._opening: list[asyncio.Task[Any]] = []
        self.questions: list[Any] = []
        self.pages: list[int] = []
        """The statuses of the pages on which the browser ended."""

    async def __call__(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        self.questions.append(params)
        assert isinstance(params, ElicitRequestURLParams)
        if self._opens == "before":
            await self.open(params.url)
        elif self._opens == "after":
            self._opening.append(asyncio.create_task(self.open(params.url)))
        return ElicitResult(action=self._answer)

    async def open(self, url: str) -> None:
        self.pages.append((await self._user.open(url)).status_code)


class GuardedClient:
    """A client of the workspace's one tool."""

    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def run(self, command: str) -> tuple[str, bool]:
        """Return the reply's text, and whether it is an error."""
        result = await self._client.call_tool("run", {"command": command}, raise_on_error=False)
        return "\n".join(part.text for part in result.content), result.is_error  # pyright: ignore[reportAttributeAccessIssue]


@asynccontextmanager
async def client_of(app: Workspace, era: str = "auto", person: Person | None = None) -> AsyncGenerator[GuardedClient]:
    """Yield a client whose questions go to *person*; without one, it offers no elicitation."""
    handler: dict[str, Any] = {"elicitation_handler": person} if person else {}
    async with Client(build_server(OneUser(app), "1"), mode=era, **handler) as client:
        yield GuardedClient(client)
