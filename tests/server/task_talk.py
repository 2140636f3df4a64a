"""A client that speaks MCP's tasks extension by what the official library offers for it: a claim, and own requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from fastmcp import Client
from fastmcp.client.client import CallToolResult as ParsedResult
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict, Field

from pace import PATIENCE

EXTENSION = "io.modelcontextprotocol/tasks"
WISH: Mapping[str, Any] = {"onetool": {"task": True}}
POLL_SECONDS = 0.02
type TaskMethod = Literal["tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"]


class ClaimedTask(Result):
    """The answer to a call that became a task."""

    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str
    created_at: str = Field(alias="createdAt")
    last_updated_at: str = Field(alias="lastUpdatedAt")
    ttl_ms: int | None = Field(alias="ttlMs")
    poll_interval_ms: int = Field(alias="pollIntervalMs")


class AnyResult(Result):
    """An answer as it came."""

    model_config = ConfigDict(extra="allow")


class TaskRequestParams(RequestParams):
    """Which task, and answers to what it asks."""

    task_id: str = Field(serialization_alias="taskId")
    input_responses: Mapping[str, Any] | None = Field(default=None, serialization_alias="inputResponses")


class TaskRequest(Request[TaskRequestParams, TaskMethod]):
    """A request of the extension."""

    method: TaskMethod
    params: TaskRequestParams
    name_param = "taskId"


class SpeaksTasks(ClientExtension):
    """Says that the client takes tasks, and waits for those that it did not ask to see."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=ClaimedTask, resolve=self._resolve),)

    async def _resolve(self, task: ClaimedTask, context: ClaimContext) -> CallToolResult:
        talk = TaskTalk(context.session)
        return CallToolResult.model_validate((await talk.until(task.task_id, "completed"))["result"])


@dataclass(frozen=True)
class TaskTalk:
    """A conversation over the session of a client."""

    session: Any

    async def call(self, command: str, meta: Mapping[str, Any] = WISH, **arguments: Any) -> Any:
        """Call run and return what came back, be it a task."""
        given = {"command": command, **arguments}
        return await self.session.call_tool("run", given, meta=dict(meta), allow_claimed=True)

    async def begin(self, command: str) -> str:
        """Call run as a task and return its id."""
        task = await self.call(command)
        assert isinstance(task, ClaimedTask), task
        return task.task_id

    async def ask(self, method: TaskMethod, id: str, answers: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request about a task and return the answer as it was on the wire."""
        params = TaskRequestParams(task_id=id, input_responses=answers)
        result = await self.session.send_request(TaskRequest(method=method, params=params), AnyResult)
        return result.model_dump(by_alias=True, exclude_none=True)

    async def get(self, id: str) -> dict[str, Any]:
        """Return the task."""
        return await self.ask("tasks/get", id)

    async def until(self, id: str, *statuses: str) -> dict[str, Any]:
        """Return the task as soon as its status is one of these."""
        async with asyncio.timeout(PATIENCE):
            while (task := await self.get(id))["status"] not in statuses:  # noqa: ASYNC110 - polling is the protocol
                await asyncio.sleep(POLL_SECONDS)
        return task


@asynccontextmanager
async def task_client(target: Any, **options: Any) -> AsyncGenerator[TaskTalk]:
    """Yield a conversation with *target* by a client that declares the extension."""
    async with Client(target, extensions=[SpeaksTasks()], **options) as client:
        yield TaskTalk(client.session)


def text_of(result: CallToolResult | ParsedResult | Mapping[str, Any]) -> str:
    """Return the text of a tool's result, be it a task's on the wire."""
    found = CallToolResult.model_validate(result) if isinstance(result, Mapping) else result
    return "\n".join(block.text for block in found.content if block.type == "text")
