"""Replicas of one server in one process, each with a connection of its own to one Redis, and people who use them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fastmcp import Client, Context, FastMCP
from mcp_types import CallToolResult, ElicitResult, Implementation, InputRequiredResult

from onetool_team.replica_runs import ReplicaRuns
from onetool_team.state.open_state import Shared
from onetool_team.state.redis_state import RedisState
from onetool_team.state.state_keys import StateKeys
from ot.execution.caller import Caller
from ot.server.drain import Drain
from ot.server.front import client_name
from ot.server.mcp_server import build_server
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import running_app

KEYS = StateKeys(["the key of both replicas, 32 characters at least"])
YES: dict[str, Any] = {"decision": "allow", "up_to": 10}
CONFIG: Mapping[str, Any] = {"policy": {"ask": ["hub.*"], "ask_seconds": 60}}


class ByName:
    """Receives everyone in one workspace, as the principal that the client's name says."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.wire = None

    @asynccontextmanager
    async def receive(self, ctx: Context) -> AsyncGenerator[tuple[Workspace, Caller]]:
        yield self.workspace, Caller(client_name(ctx), client="test")

    @asynccontextmanager
    async def enter(self, principal: str) -> AsyncGenerator[Workspace]:
        yield self.workspace


@dataclass
class Hub:
    """A pack whose functions live here, and what they did."""

    deleted: list[int] = field(default_factory=list[int])

    def delete(self, *, item: int) -> int:
        """Delete something."""
        self.deleted.append(item)
        return item

    def purge(self, *, item: int) -> int:
        """Delete something for good."""
        return self.delete(item=-item)

    @property
    def functions(self) -> dict[str, Any]:
        return {"hub": {"delete": self.delete, "purge": self.purge}}


@dataclass
class Replica:
    """One server and what is behind it."""

    server: FastMCP
    workspace: Workspace
    state: RedisState
    hub: Hub
    drain: Drain

    @asynccontextmanager
    async def person(self, name: str = "ann", mode: str = "auto") -> AsyncGenerator[Person]:
        """Yield somebody who is connected to it."""
        info = Implementation(name=name, version="1")
        handler: Any = _never_asked
        async with Client(self.server, client_info=info, elicitation_handler=handler, mode=mode) as client:  # pyright: ignore[reportArgumentType] - one of ConnectMode's values
            yield Person(client)


@dataclass
class Person:
    """Sends requests one by one, each of which may go to another replica."""

    client: Client[Any]

    async def run(self, command: str, session: str = "", **more: Any) -> CallToolResult | InputRequiredResult:
        """Return what the server says to one request."""
        given = {"command": command} | ({"session": session} if session else {})
        found = await self.client.session.call_tool("run", given, allow_input_required=True, **more)
        assert isinstance(found, CallToolResult | InputRequiredResult)
        return found

    async def text(self, command: str, session: str = "") -> str:
        """Return the text of the reply."""
        return text_of(await self.run(command, session))

    async def asked(self, command: str, session: str = "") -> str:
        """Return the token of the question that a run asks."""
        return token_of(await self.run(command, session))

    async def answer(
        self, token: str, command: str, session: str = "", **more: Any
    ) -> CallToolResult | InputRequiredResult:
        """Return what the server says to a yes."""
        said: Any = {"answer": ElicitResult(action="accept", content=YES)}
        return await self.run(command, session, request_state=token, input_responses=said, **more)


def text_of(found: CallToolResult | InputRequiredResult) -> str:
    """Return the text of a reply."""
    assert isinstance(found, CallToolResult), found
    return "\n".join(getattr(block, "text", "") for block in found.content)


def token_of(found: CallToolResult | InputRequiredResult) -> str:
    """Return the token of a question."""
    assert isinstance(found, InputRequiredResult), found
    assert found.request_state
    return found.request_state


@asynccontextmanager
async def replica(
    directory: Path,
    url: str,
    config: Mapping[str, Any] = CONFIG,
    keys: StateKeys = KEYS,
    prefix: str = "onetool",
    *,
    answer_seconds: float = PATIENCE,
) -> AsyncGenerator[Replica]:
    """Yield one replica; unless it says otherwise, a Redis that a busy machine leaves waiting is not a lost one."""
    hub, state, drain = Hub(), RedisState(url, prefix, answer_seconds=answer_seconds), Drain()
    async with running_app(made(directory), config=config, functions=hub.functions) as workspace:
        join, seal = partial(ReplicaRuns, Shared(state, keys)), keys.derive("request-state")
        server = build_server(ByName(workspace), "1", drain=drain, seal_keys=seal, join_others=join)
        async with server._lifespan_manager():  # pyright: ignore[reportPrivateUsage] - as a transport does
            yield Replica(server, workspace, state, hub, drain)
    await state.aclose()


@asynccontextmanager
async def two_replicas(
    directory: Path, url: str, config: Mapping[str, Any] = CONFIG, *, answer_seconds: float = PATIENCE
) -> AsyncGenerator[tuple[Replica, Replica]]:
    """Yield two replicas that share one Redis, under a prefix that is the test's own."""
    made_as: dict[str, Any] = {"config": config, "prefix": str(directory), "answer_seconds": answer_seconds}
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(replica(directory / "one", url, **made_as))
        other = await stack.enter_async_context(replica(directory / "other", url, **made_as))
        yield one, other


def made(directory: Path) -> Path:
    """Return *directory*, which is there now."""
    directory.mkdir(exist_ok=True)
    return directory


async def _never_asked(*_: Any) -> Any:
    raise AssertionError("these tests answer by hand")
