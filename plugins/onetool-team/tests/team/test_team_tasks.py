"""MCP tasks of a team: a worker carries them out, any replica answers for them, to whoever made them alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any

import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from http_server import HttpServer
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE
from postgres_server import postgres_server
from server.task_talk import TaskTalk, task_client, text_of
from state.redis_process import running_redis
from team.background.worker_process import WorkerProcess

pytestmark = pytest.mark.anyio

TOKENS = {name: new_token() for name in ("ann", "bob")}
CONFIG = """
engines: {{use: portable}}
policy: {{ask: ["ot.version"]}}
state: {{redis: "{redis}", postgres: "{postgres}", keys: ["a key of 32 characters, or of more than that"]}}
http: {{tokens: {{ann: {{hash: "{ann}"}}, bob: {{hash: "{bob}"}}}}}}
logs: {{level: WARNING}}
"""
ASKS = "len(ot.version()) > 0"
YES = {"action": "accept", "content": {"decision": "allow"}}


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HttpServer]]:
    """Two replicas and a worker."""
    root = tmp_path_factory.mktemp("team-tasks")
    hashes = {name: token_hash(token) for name, token in TOKENS.items()}
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis())
        postgres = stack.enter_context(postgres_server())
        config = CONFIG.format(redis=redis.url, postgres=postgres.address, **hashes)
        for name in ("one", "other", "worker"):
            (root / name).mkdir()
        worker = WorkerProcess.start(root / "worker", config, ready=False)
        stack.callback(worker.close)
        servers = [stack.enter_context(HttpServer.start(root / name, config, ready=False)) for name in ("one", "other")]
        for server in (*servers, worker):
            server.wait_until_ready()
        yield servers


async def never(*_: Any) -> Any:
    raise AssertionError("tasks ask by being polled")


def client(server: HttpServer, name: str = "ann") -> AbstractAsyncContextManager[TaskTalk]:
    transport = StreamableHttpTransport(server.url, headers={"Authorization": f"Bearer {TOKENS[name]}"})
    return task_client(transport, elicitation_handler=never)


async def test_a_task_is_answered_for_and_answered_at_the_replica_that_did_not_make_it(
    replicas: list[HttpServer],
) -> None:
    one, other = replicas
    async with asyncio.timeout(3 * PATIENCE), client(one) as here, client(other) as there:
        id = await here.begin(ASKS)
        task = await there.until(id, "input_required")
        (key,) = task["inputRequests"]
        await there.ask("tasks/update", id, {key: YES})
        done = await there.until(id, "completed")
        assert text_of(done["result"]) == "true"
        assert (await here.get(id))["result"] == done["result"]


async def test_nobody_else_sees_answers_or_cancels_a_task(replicas: list[HttpServer]) -> None:
    one, other = replicas
    async with asyncio.timeout(3 * PATIENCE), client(one) as ann, client(other, "bob") as bob:
        id = await ann.begin(ASKS)
        (key,) = (await ann.until(id, "input_required"))["inputRequests"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as caught:
                await bob.ask(method, id, {key: YES})
            assert (caught.value.code, caught.value.message) == (INVALID_PARAMS, "no task with this id")
        assert (await ann.get(id))["status"] == "input_required"
        await ann.ask("tasks/cancel", id)
        assert (await ann.until(id, "cancelled"))["taskId"] == id
