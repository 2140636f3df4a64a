"""A whole team's server on loopback: any replica answers anybody, and the loss of a part is told, not suffered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from http_server import HttpServer, call, reply_of
from pace import PATIENCE, wait_while
from team.balancer import Balancer
from team.whole_team import WholeTeam, canary, whole_team

pytestmark = pytest.mark.anyio

ERAS = ("auto", "legacy")
HANDLE = re.compile(r'"handle":"([\w-]+)"')
LARGE = "[f'{n} %s' for n in range(500)]"
RUNS = 60


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Generator[WholeTeam]:
    with whole_team(tmp_path_factory.mktemp("team")) as running:
        yield running


@asynccontextmanager
async def served(team: WholeTeam) -> AsyncGenerator[Balancer]:
    async with team.balancing() as balancer, asyncio.timeout(4 * PATIENCE):
        yield balancer


async def said(client: Any, command: str, **more: Any) -> str:
    """Return the text that *command* comes to."""
    result = await client.call_tool("run", {"command": command, **more}, raise_on_error=False)
    return "\n".join(block.text for block in result.content)


async def read(client: Any, resource: str) -> str:
    """Return the text of a resource."""
    return (await client.read_resource(resource))[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_answered_by_both_replicas_and_does_not_notice(team: WholeTeam, era: str) -> None:
    async with served(team) as balancer, team.client(team.tokens["ann"], era) as client:
        assert ["run"] == [tool.name for tool in await client.list_tools()]
        for n in range(8):
            assert str(2 * n) == await said(client, f"{n} + {n}")
        assert "ZeroDivisionError" in await said(client, "1 / 0")
        assert "file.read" in await read(client, "ot://tools")
        assert all(balancer.served.values()), balancer.served


@pytest.mark.parametrize("era", ERAS)
async def test_a_stored_result_is_read_from_any_replica_by_its_owner_alone(team: WholeTeam, era: str) -> None:
    mark = canary()
    one, other = (f"{replica.url}" for replica in team.replicas)
    async with (
        team.client(team.tokens["ann"], era, one) as here,
        team.client(team.tokens["ann"], era, other) as there,
        team.client(team.tokens["bob"], era, other) as bob,
        team.client(team.login("ann"), era, other) as namesake,
    ):
        found = HANDLE.search(stored := await said(here, LARGE % mark))
        assert found, stored
        handle = found[1]
        page = f"ot.result(handle={handle!r}, offset=499, limit=1)"
        assert f"498 {mark}" in await said(there, page)
        assert f"499 {mark}" in await read(there, f"ot://result/{handle}")
        for stranger in (bob, namesake):
            assert "not found" in (told := await said(stranger, page))
            assert mark not in told


async def test_people_of_the_authorization_server_have_workspaces_of_their_own(team: WholeTeam) -> None:
    mark = canary()
    async with (
        served(team),
        team.client(team.login("eve")) as eve,
        team.client(team.login("carl")) as carl,
        team.client(team.tokens["ann"]) as ann,
    ):
        await said(eve, f"file.write(path='note.txt', content='{mark}')")
        for _ in range(2):  # whichever replica answers
            assert mark in await said(eve, "open('note.txt').read()")
            assert mark not in await said(carl, "file.search(pattern='canary')")
            assert "No such file" in await said(ann, "open('note.txt').read()")


async def test_without_its_object_store_a_replica_answers_and_says_what_is_not_kept(team: WholeTeam) -> None:
    mark = canary()
    async with served(team), team.client(team.tokens["ann"]) as client:
        team.s3.kill()
        try:
            assert "2" == await said(client, "1 + 1")
            lost = await said(client, LARGE % mark)
            assert "not kept" in lost
            assert not HANDLE.search(lost)
        finally:
            await asyncio.to_thread(team.s3.start)
        found = HANDLE.search(await _until_kept(client, LARGE % mark))
        assert found
        assert mark in await said(client, f"ot.result(handle={found[1]!r}, limit=1)")


async def _until_kept(client: Any, command: str) -> str:
    """Return the reply once results are kept again: the store is tried anew in a moment."""
    async with asyncio.timeout(PATIENCE):
        while not HANDLE.search(text := await said(client, command)):  # noqa: ASYNC110 - it tells nobody when
            await asyncio.sleep(0.1)
    return text


async def test_a_replica_that_is_asked_to_end_under_load_loses_no_request(team: WholeTeam) -> None:
    """Not ready first, for the balancer to notice; then open runs end: every request has a result or a tool's error."""
    async with served(team), team.raw(team.tokens["ann"]) as client:
        leaving = team.replicas[0]
        answers = asyncio.gather(*(_asked(client, n) for n in range(RUNS)))
        leaving.signal()
        await asyncio.to_thread(leaving.wait)
        for answer in await answers:
            assert answer.status_code in (200, 429), answer.text
            reply = reply_of(answer)
            assert "result" in reply or answer.status_code == 429, reply
            if "result" in reply and not reply["result"]["isError"]:
                assert reply["result"]["content"][0]["text"].isdigit()
        leaving.close()
        team.replicas[0] = await asyncio.to_thread(team.start_replica, "one")


async def _asked(client: httpx2.AsyncClient, number: int) -> httpx2.Response:
    await asyncio.sleep(number * 0.01)  # a steady stream, of which some come before the end, some while, some after
    return await client.post("/mcp", json=call(str(number), number=number))


async def test_a_replica_that_is_killed_takes_no_other_with_it(team: WholeTeam) -> None:
    async with served(team) as balancer, team.client(team.tokens["ann"]) as client:
        lost = team.replicas[1]
        lost.kill()
        await asyncio.to_thread(wait_while, lambda: lost.port in balancer.ready)
        for n in range(4):
            assert str(n) == await said(client, str(n))
        team.replicas[1] = await asyncio.to_thread(team.start_replica, "other")


def test_both_replicas_are_as_ready_as_they_say(team: WholeTeam) -> None:
    for replica in team.replicas:
        assert {"status": "ready", "engine": "portable"} == replica.get("/readyz").json()
        assert isinstance(replica, HttpServer)
