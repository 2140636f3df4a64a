"""``onetool serve --http``: real clients of both eras, how it starts, and how it ends."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from team.http_server import CLASSIC, ERAS, MODERN, HttpServer, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpServer]:
    with HttpServer.start(tmp_path_factory.mktemp("http")) as started:
        yield started


def client_of(server: HttpServer, era: str) -> Client[StreamableHttpTransport]:
    headers = {"Authorization": f"Bearer {server.token}"}
    return Client(StreamableHttpTransport(server.url, headers=headers), mode=ERAS[era])  # pyright: ignore[reportArgumentType] - the mode is a literal


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_either_era_lists_the_one_tool_and_runs_programs(server: HttpServer, era: str) -> None:
    async with client_of(server, era) as client:
        assert ["run"] == [tool.name for tool in await client.list_tools()]
        result = await client.call_tool("run", {"command": "[n * n for n in range(4)]"})
        assert "[0,1,4,9]" == result.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
        failed = await client.call_tool("run", {"command": "1 / 0"}, raise_on_error=False)
        assert failed.is_error


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
async def test_a_plain_http_client_runs_programs_without_a_handshake(server: HttpServer, era: str) -> None:
    answered = server.run("6 * 7", era)
    assert (200, "42") == (answered.status_code, text_of(answered))
