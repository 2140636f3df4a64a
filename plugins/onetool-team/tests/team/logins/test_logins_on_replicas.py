"""A login begun by one replica's run and finished at another's pages: real processes, a real Redis, a real browser."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from http_server import HttpServer
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import guarded_config
from oauth.resource_server import LoopbackResourceServer
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE
from state.redis_process import RedisProcess
from stats.browser import Page, browser
from team.logins.login_bed import Invited
from team.team_bed import run, text_of

pytestmark = pytest.mark.anyio

ECHO = "guarded.echo(text='hello')"


class Replicas:
    """Two servers of one team; browsers are sent to the second."""

    def __init__(self, root: Path, resource: LoopbackResourceServer, redis: RedisProcess) -> None:
        self.token, self._root = new_token(), root
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._config = json.dumps(
            {
                **guarded_config(resource),
                "engines": {"use": "portable"},
                "http": {
                    "public_url": f"http://127.0.0.1:{self.port}",
                    "tokens": {"ann": {"hash": token_hash(self.token)}},
                },
                "state": {"redis": redis.url, "prefix": root.name, "keys": ["a key that the replicas of a test share"]},
            }
        )

    def start(self, name: str, address: str) -> HttpServer:
        return HttpServer.start(self._root / name, self._config, address=address)

    def client(self, server: HttpServer, invited: Invited) -> Client[StreamableHttpTransport]:
        return Client(StreamableHttpTransport(server.url, auth=self.token), elicitation_handler=invited)


@pytest.fixture
def replicas(
    tmp_path: Path, resource: LoopbackResourceServer, redis: RedisProcess
) -> Generator[tuple[Replicas, HttpServer]]:
    bed = Replicas(tmp_path, resource, redis)
    with ExitStack() as stack:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        one = stack.enter_context(bed.start("one", "0"))
        stack.enter_context(bed.start("two", str(bed.port)))
        yield bed, one


def log_in(page: Page, link: str, code: str) -> str:
    """Go the whole way in a browser, and return what the last page says."""
    page.open(link)
    page.value(f"document.querySelector('#code').value = {json.dumps(code.lower())}")
    page.follow("document.querySelector('button').click()")
    return page.value("document.body.innerText")


async def test_a_browser_logs_in_at_one_replica_for_the_run_of_another(
    replicas: tuple[Replicas, HttpServer], issuer: LoopbackAuthorizationServer
) -> None:
    bed, one = replicas
    invited = Invited()
    async with bed.client(one, invited) as client:
        running: asyncio.Task[Any] = asyncio.create_task(run(client, ECHO))
        async with asyncio.timeout(PATIENCE):
            await invited.asked.wait()
        with browser() as page:
            page.set_cookie("user", "ada", issuer.origin)
            said = await asyncio.to_thread(log_in, page, invited.link, invited.code)
        assert "You are logged in" in said
        assert "guarded for ann" in said
        result = await running
        assert (text_of(result), result.is_error) == ("hello", False)
    assert issuer.counts["logins"] == 1
    assert not page.said  # no policy of the page's was in its way
