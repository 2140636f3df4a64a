"""What one replica learns or is told to reload, the other notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastmcp import Context, FastMCP
from mcp_types import ToolListChangedNotification

from onetool_team.replica_sharing import ReplicaSharing
from onetool_team.state.open_state import Shared
from onetool_team.state.redis_state import RedisState
from onetool_team.state.revisions import Revisions
from onetool_team.state.state_keys import StateKeys
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from pace import PATIENCE
from proxied.desk import http_server, until
from run_app import paths_in
from state.redis_process import RedisProcess

pytestmark = pytest.mark.anyio

CONFIG = {"policy": {"allow": ["till.*"]}}
TOOLS = "ot.tools(pattern='till.', info='list')"


@asynccontextmanager
async def replica(directory: Path, redis: RedisProcess, server: str) -> AsyncGenerator[Workspace]:
    """Yield a workspace of one replica; the operator's directory is the same for all of them."""
    state = RedisState(redis.url, str(directory), answer_seconds=PATIENCE)
    workspace = Workspace.alone(
        paths_in(directory, CONFIG | {"servers": {"till": {"url": server}}}), engine=PortableEngine()
    )
    workspace.host.sharing = ReplicaSharing(Shared(state, StateKeys.ephemeral()))
    yield workspace
    await workspace.aclose()
    await state.aclose()


def number(workspace: Workspace) -> int:
    assert workspace.host.sharing is not None
    return workspace.host.sharing.catalogue_revision


async def test_what_one_replica_learns_of_a_server_the_other_knows_without_asking_it(
    tmp_path: Path, redis: RedisProcess
) -> None:
    mcp = FastMCP("till")

    @mcp.tool
    async def open_desk(ctx: Context) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        mcp.tool(lambda: "refunded", name="refund")
        await ctx.send_notification(ToolListChangedNotification())
        return "open"

    async with (
        http_server(mcp) as (url, _),
        replica(tmp_path, redis, url) as one,
        replica(tmp_path, redis, url) as other,
        asyncio.timeout(PATIENCE),
    ):
        for workspace in (one, other):
            await workspace.run("till")  # so that it is asked what it offers
            assert "till.refund" not in (await workspace.run(TOOLS)).text
        await until(lambda: number(other) == number(one) > 0)
        before = number(other)
        assert (await one.run("till.open_desk()")).text == "open"
        await until(lambda: number(other) > before)
        assert "till.refund" in (await other.run(TOOLS)).text


async def test_a_reload_on_one_replica_is_one_on_the_other(tmp_path: Path, redis: RedisProcess) -> None:
    async with (
        replica(tmp_path, redis, "http://127.0.0.1:9/mcp") as one,
        replica(tmp_path, redis, "http://127.0.0.1:9/mcp") as other,
    ):
        await other.run("1")
        before, picture = number(other), other.picture
        await one.run("ot.reload()")
        await until(lambda: number(other) > before)
        await other.run("1")
        assert other.picture is not picture
        picture = other.picture
        await other.run("1")
        assert other.picture is picture, "once"


async def test_without_the_shared_state_nothing_is_new(redis: RedisProcess) -> None:
    state = RedisState(redis.url.replace("redis.sock", "nobody.sock"))
    revisions = Revisions(state, ["topic"])
    revisions.start()
    await revisions.advance("topic")
    assert revisions.number("topic") == 0
    await revisions.aclose()
    await state.aclose()
