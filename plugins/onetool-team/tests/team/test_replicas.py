"""Replicas in processes of their own behind one Redis and one PostgreSQL: what happens when one of them goes."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp_types import CallToolResult

from faults.watched import Place
from http_server import HttpServer
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE, patiently, wait_while
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess, running_redis
from state.replicas import Person, text_of

pytestmark = pytest.mark.anyio

TOKENS = {name: new_token() for name in ("ann", "bob")}
CONFIG = """
engines: {{use: portable}}
policy: {{ask: ["ot.version"]}}
state: {{redis: "{redis}", postgres: "{postgres}", prefix: "{prefix}", keys: ["a key of 32 characters, or of more"]}}
http: {{tokens: {{ann: {{hash: "{ann}"}}, bob: {{hash: "{bob}", scopes: [run, admin]}}}}}}
"""
BELL = """"A bell."
import time
from pathlib import Path

def ring(*, times: int) -> int:
    "Ring it."
    return times

def hold(*, sign: str) -> None:
    "Hold it for a minute, and leave a sign that it is held."
    Path(sign).touch()
    time.sleep(60)
"""
ASKS = "len(ot.version()) > 0"
GONE = "the replica that held this run is gone"
TOLD_SECONDS = 10.0
"""How soon whoever asks must be told that a replica is gone: this is what was promised, on any machine."""


@pytest.fixture(scope="module")
def redis() -> Generator[RedisProcess]:
    with running_redis() as process:
        yield process


@pytest.fixture(scope="module")
def postgres() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


def started(root: Path, redis: RedisProcess, postgres: str = "") -> HttpServer:
    """Return one replica, which may not be ready yet."""
    tools = Place(root / "home", root / "work").config.parent / "tools" / "bell"
    tools.mkdir(parents=True)
    (tools / "bell_tools.py").write_text(BELL)
    hashes = {name: token_hash(token) for name, token in TOKENS.items()}
    config = CONFIG.format(redis=redis.url, postgres=postgres, prefix=root.parent.name, **hashes)
    return HttpServer.start(root, config, ready=False)


@pytest.fixture(scope="module")
def replicas(
    tmp_path_factory: pytest.TempPathFactory, redis: RedisProcess, postgres: PostgresServer
) -> Generator[list[HttpServer]]:
    root = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        servers = [stack.enter_context(started(root / str(n), redis, postgres.address)) for n in range(3)]
        for server in servers:
            server.wait_until_ready()
        yield servers


@asynccontextmanager
async def person(server: HttpServer, name: str = "ann") -> AsyncGenerator[Person]:
    """Yield somebody who sends requests to *server*."""

    async def never(*_: Any) -> Any:
        raise AssertionError("these tests answer by hand")

    transport = StreamableHttpTransport(server.url, headers={"Authorization": f"Bearer {TOKENS[name]}"})
    async with Client(transport, elicitation_handler=never) as client, asyncio.timeout(3 * PATIENCE):
        yield Person(client)


async def test_a_question_and_a_session_are_found_on_the_other_replica(replicas: list[HttpServer]) -> None:
    one, other, _ = replicas
    async with person(one) as here, person(other) as there, person(other, "bob") as bob:
        token = await here.asked(ASKS)
        assert "no run waits for this answer" in text_of(await bob.answer(token, ASKS))
        assert text_of(await there.answer(token, ASKS)) == "true"
        await here.text("x = 41", "notes")
        assert await there.text("x + 1", "notes") == "42"
        assert "'x' is not defined" in await bob.text("x", "notes")
        assert "status: ok" in (await bob.text("ot.health()")).partition("state:")[2]


async def test_what_a_run_did_is_known_on_the_other_replica_and_to_nobody_else(replicas: list[HttpServer]) -> None:
    one, other, _ = replicas
    async with person(one) as here, person(other) as there, person(other, "bob") as bob:
        said = await here.run("bell.ring(times=3)")
        assert isinstance(said, CallToolResult)
        assert "3" == text_of(said)
        run = (said.meta or {})["onetool"]["run"]
        asks = f"__format__ = 'json'\n[(row['tool'], row['state']) for row in ot.effects(run='{run}')]"
        assert '[["bell.ring","done"]]' == await there.text(asks)
        assert "[]" == await bob.text(asks)
        assert "kind: postgres" in (await bob.text("ot.health()")).partition("ledger:")[2]


async def test_what_a_killed_replica_had_sent_is_unknown_on_the_other(
    tmp_path: Path, redis: RedisProcess, postgres: PostgresServer, replicas: list[HttpServer]
) -> None:
    left, sign = replicas[2], tmp_path / "held"
    hold, asks = f"bell.hold(sign='{sign}')", "__format__ = 'json'\n[row['state'] for row in ot.effects()]"
    with started(left.place.home.parents[1] / "doomed", redis, postgres.address) as doomed:
        doomed.wait_until_ready()
        async with person(left) as there:
            holding = asyncio.ensure_future(asyncio.to_thread(doomed.run, hold, token=TOKENS["ann"]))
            await asyncio.to_thread(wait_while, lambda: not sign.exists())
            assert "[]" == await there.text(asks), "it is under way"
            doomed.signal(signal.SIGKILL)
            await asyncio.gather(holding, return_exceptions=True)
            began = time.monotonic()
            while await there.text(asks) != '["unknown"]':
                assert time.monotonic() - began < TOLD_SECONDS


async def test_the_end_of_a_replica_is_told_in_time(replicas: list[HttpServer]) -> None:
    killed, ended, left = replicas
    for session, one, other, number in (
        ("killed", killed, ended, signal.SIGKILL),
        ("ended", ended, left, signal.SIGTERM),
    ):
        async with person(one) as here, person(other) as there:
            token = await here.asked(ASKS)
            await here.text("x = 41", session)
            one.signal(number)
            if number == signal.SIGTERM:
                await asyncio.to_thread(one.wait)
            began = time.monotonic()
            assert GONE in text_of(await there.answer(token, ASKS))
            assert time.monotonic() - began < TOLD_SECONDS
            lost = await there.text("x", session)
            assert "SessionLost" in lost
            assert "the replica that held it is gone" in lost
            assert await there.text("y = 1; y", session) == "1"


@pytest.mark.soak
async def test_a_replica_that_is_frozen_is_gone_and_does_nothing_late(tmp_path: Path, redis: RedisProcess) -> None:
    with started(tmp_path / "one", redis) as one, started(tmp_path / "other", redis) as other:
        one.wait_until_ready()
        other.wait_until_ready()
        async with person(one) as here, person(other) as there:
            token = await here.asked(ASKS)
            one.signal(signal.SIGSTOP)
            began = time.monotonic()
            assert GONE in text_of(await there.answer(token, ASKS))
            assert time.monotonic() - began < TOLD_SECONDS
            one.signal(signal.SIGCONT)
            # It did not take the answer that was given up: the question is still there.
            assert text_of(await here.answer(token, ASKS)) == "true"


async def test_without_redis_a_replica_is_ready_says_so_and_recovers(tmp_path: Path) -> None:
    with running_redis() as redis, started(tmp_path / "one", redis) as one:
        one.wait_until_ready()
        async with person(one) as here, person(one, "bob") as bob:
            redis.kill()
            assert await here.text("1 + 1") == "2"
            ready = readiness(one, lost=True)
            assert ready["status"] == "ready"
            assert "the shared state is unreachable since" in ready["shared_state"]
            assert "unreachable since" in (await bob.text("ot.health()")).partition("state:")[2]
            redis.start()
            assert "shared_state" not in readiness(one, lost=False)
            await here.text("x = 41", "notes")
            assert await here.text("x + 1", "notes") == "42"


def readiness(server: HttpServer, *, lost: bool) -> dict[str, Any]:
    """Return what /readyz says once it has noticed."""
    found: dict[str, Any] = {}
    for _ in patiently():
        found = server.get("/readyz").json()
        if ("shared_state" in found) is lost:
            break
    return found
