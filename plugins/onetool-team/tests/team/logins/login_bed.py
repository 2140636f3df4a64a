"""A team's server whose users log in to a guarded server, and browsers that find its pages at https."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
from fastmcp.client.elicitation import ElicitResult
from mcp_types import ElicitRequestURLParams

from oauth.browserless_user import MOST_REDIRECTS
from oauth.guarded_app import guarded_config
from oauth.resource_server import LoopbackResourceServer
from onetool_team.http.asgi import AsgiApp
from onetool_team.http.host_origin import HostOrigin
from onetool_team.http.routes import Routes
from onetool_team.logins.team_logins import TeamLogins
from onetool_team.replica_sharing import ReplicaSharing
from onetool_team.settings import Http
from onetool_team.state.open_state import Shared
from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import StateKeys
from team.team_bed import TeamBed, run, team, text_of

PUBLIC = "https://onetool.example"
SECONDS = 20.0
CODE = re.compile(r"enter the code ([0-9A-Z]{3}-[0-9A-Z]{3}) there")


class Browser(httpx2.AsyncClient):
    """Whoever is called *name* at authorization servers, with the cookies of one browser."""

    def __init__(self, pages: AsgiApp, name: str = "ada") -> None:
        reached = httpx2.ASGITransport(cast("Any", pages))
        super().__init__(mounts={PUBLIC: reached}, cookies={"user": name}, trust_env=False)

    async def submit(self, link: str, code: str, origin: str = PUBLIC) -> httpx2.Response:
        """Send the form of the start page."""
        headers = {"origin": origin} if origin else {}
        return await self.post(link, data={"code": code}, headers=headers)

    async def follow(self, response: httpx2.Response) -> httpx2.Response:
        """Return what answers in the end."""
        for _ in range(MOST_REDIRECTS):
            if not response.is_redirect:
                return response
            response = await self.get(response.headers["location"])
        raise AssertionError("it never stops redirecting")

    async def log_in(self, link: str, code: str) -> httpx2.Response:
        """Go the whole way, from the link to the last page."""
        assert (await self.get(link)).status_code == 200
        return await self.follow(await self.submit(link, code))


@dataclass
class Invited:
    """Who is asked by the client: agrees, and has what the client showed."""

    action: Any = "accept"
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    questions: list[ElicitRequestURLParams] = field(default_factory=list[ElicitRequestURLParams])

    async def __call__(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        assert isinstance(params, ElicitRequestURLParams)
        self.questions.append(params)
        self.asked.set()
        return ElicitResult(action=self.action)

    @property
    def link(self) -> str:
        """The address to open."""
        return self.questions[-1].url

    @property
    def code(self) -> str:
        """The code to enter there."""
        found = CODE.search(self.questions[-1].message)
        assert found, self.questions[-1].message
        return found[1]


@dataclass
class LoginBed:
    """The server, and the pages as another replica shows them."""

    bed: TeamBed
    pages: AsgiApp

    def browser(self, name: str = "ada") -> Browser:
        """Return a new browser."""
        return Browser(self.pages, name)

    async def run(self, who: str, command: str, invited: Invited | None = None, mode: str = "auto") -> tuple[str, bool]:
        """Return the text of a run, and whether it is an error."""
        handler: dict[str, Any] = {"elicitation_handler": invited} if invited else {}
        async with self.bed.client(who, mode, **handler) as client:
            result = await run(client, command)
            return text_of(result), result.is_error

    @asynccontextmanager
    async def waiting(self, who: str, command: str) -> AsyncGenerator[tuple[Invited, asyncio.Task[tuple[str, bool]]]]:
        """Yield what the client of a run showed, and the run, which waits for a login."""
        invited = Invited()
        running = asyncio.create_task(self.run(who, command, invited))
        try:
            async with asyncio.timeout(SECONDS):
                await invited.asked.wait()
            yield invited, running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def login_bed(
    directory: Path,
    resource: LoopbackResourceServer,
    here: SharedState,
    there: SharedState,
    *,
    seconds: float = SECONDS,
    public_url: str = PUBLIC,
) -> AsyncGenerator[LoginBed]:
    """Yield a server that shares *here*, and pages of a replica that shares *there*: the same, or the same Redis."""
    keys = StateKeys(["a key that the replicas of a test share"])
    async with team(directory, guarded_config(resource)) as bed:
        host = bed.front.workspace.host
        host.servers.logins = TeamLogins(here, keys, public_url, seconds).asked
        if here.replicas:
            host.sharing = ReplicaSharing(Shared(here, keys))
        yield LoginBed(bed, _pages(TeamLogins(there, keys, public_url), public_url))


def _pages(logins: TeamLogins, public_url: str) -> AsgiApp:
    found = logins.pages.routes() if logins.pages else {}
    return HostOrigin(Routes(found), Http(public_url=public_url))
