"""MCP tasks: a client that speaks the extension has ``run`` carried out in the background, and asks how it stands."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.tools import ToolResult
from fastmcp.utilities.tasks import TASKS_EXTENSION_ID
from mcp import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    RequestParams,
    TextContent,
)
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from ot.errors import OneToolError
from ot.execution.caller import Caller, Question
from ot.ledger.background_run import ENDED, RunEnd, RunStatus
from ot.registry.announced_tool import META, read_meta
from ot.server.drain import Drain
from ot.server.elicitation import QuestionModes, elicit_request, is_modern, modes_of
from ot.server.front import Front
from ot.workspace import Workspace

type TaskStatus = Literal["working", "input_required", "completed", "cancelled"]
"""The extension's ``failed`` is for errors of the protocol: a program that fails has completed with an error."""
LATER = ConfigDict(defer_build=True)
"""Built with the first task: a server that is asked for none starts no slower."""
POLL_MS = 1000
"""Whoever carries a run out looks once a second for what is wanted of it."""
SLOW_POLL_MS = 5000
YOUNG_SECONDS = 60.0
DAY_MS = 86_400_000
WAITS = "it waits for its turn"
CANCELS = "it is being cancelled"
ASKS_ELSEWHERE = "it asks its user, whom this client cannot ask: onetool answer {id}"


class TaskParams(RequestParams):
    """Which task is meant."""

    model_config = LATER

    task_id: str = Field(alias="taskId", min_length=1, max_length=200)


class TaskAnswers(TaskParams):
    """Answers to what a task asks, by the key of each question."""

    input_responses: dict[str, Any] = Field(alias="inputResponses")

    def answer(self, key: str) -> Mapping[str, Any] | None:
        """Return the answer to the question of that *key*, if there is one; other keys do not matter.

        Raises:
            ValidationError: It is malformed.
        """
        if key not in self.input_responses:
            return None
        result = ElicitResult.model_validate(self.input_responses[key], by_name=False)
        return {"action": result.action, "content": result.content or {}}


class WireTask(BaseModel):
    """A task, as it is made and as it is asked for."""

    model_config = LATER | ConfigDict(alias_generator=to_camel, populate_by_name=True)

    result_type: Literal["task", "complete"] = "complete"
    task_id: str
    status: TaskStatus
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int
    poll_interval_ms: int
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


@dataclass(frozen=True)
class TaskForm:
    """Puts what is known of a run into the form of a task, for one client."""

    now: float
    days: int
    """How long runs are kept."""
    modes: QuestionModes
    """What the client can put before its user."""

    def describe_made(self, status: RunStatus) -> WireTask:
        """Return the answer to the call that made the task, which carries neither question nor result."""
        return WireTask(result_type="task", status="working", **self._fields(status))

    def describe(self, status: RunStatus) -> WireTask:
        """Return the task's current state."""
        if status.end is not None and status.state in ENDED:
            return self._describe_end(status, status.end)
        if request := self._request(status):
            return WireTask(status="input_required", input_requests=request, **self._fields(status))
        return WireTask(status="working", status_message=_message(status), **self._fields(status))

    def _describe_end(self, status: RunStatus, end: RunEnd) -> WireTask:
        if end.state == "cancelled":
            message = "\n".join(end.texts) or None
            return WireTask(status="cancelled", status_message=message, **self._fields(status))
        return WireTask(status="completed", result=_result(status.run.id, end), **self._fields(status))

    def _request(self, status: RunStatus) -> dict[str, Any] | None:
        if status.question is None or not self.modes.allow(question := _question(status.question)):
            return None
        request = elicit_request(question).model_dump(mode="json", by_alias=True, exclude_none=True)
        return {question_key(status): request}

    def _fields(self, status: RunStatus) -> dict[str, Any]:
        created = status.run.created
        return {
            "task_id": status.run.id,
            "created_at": _time(created),
            # Whoever carries it out shows every second that it is alive.
            "last_updated_at": _time(status.end.at if status.end else self.now),
            "ttl_ms": self.days * DAY_MS,
            "poll_interval_ms": POLL_MS if self.now - created < YOUNG_SECONDS else SLOW_POLL_MS,
        }


def question_key(status: RunStatus) -> str:
    """Return the key of the run's question, which no other question of the run ever has."""
    assert status.question is not None
    return str(status.question["number"])


def _question(kept: Mapping[str, Any]) -> Question:
    return Question(kept["message"], kept.get("schema") or {}, kept.get("kind", "form"), url=kept.get("url", ""))


def _message(status: RunStatus) -> str | None:
    if status.cancelled:
        return CANCELS
    if status.state == "asks":
        return ASKS_ELSEWHERE.format(id=status.run.id)
    return WAITS if status.state == "waiting" else None


def _result(id: str, end: RunEnd) -> dict[str, Any]:
    """Return the result that the call of the tool would have returned."""
    told: Mapping[str, str] = {"run": id, "state": end.state, "error": end.error, "result": end.handle}
    result = CallToolResult(
        content=[TextContent(type="text", text=text) for text in end.texts],
        is_error=end.state != "done",
        _meta={META: {name: value for name, value in told.items() if value}},
    )
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


MODERN = frozenset(MODERN_PROTOCOL_VERSIONS)
RUN = "run"
WISH = "task"
"""What a call says under ``_meta.onetool`` to be made a task: the extension itself has no word for it."""
UNDECLARED = f"the request does not declare the extension {TASKS_EXTENSION_ID}, which its method belongs to"
NO_SESSION = "a task has no session: nothing has run. Leave the session out, or call without _meta.onetool.task"
NOT_FOUND = "no task with this id"
NEEDED: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION_ID: {}}}}
type CallTool = Callable[[], Awaitable[ToolResult | BaseModel]]


class RunTasks(ServerExtension):
    """Makes runs in the background of calls whose clients wish it; the id of a task is the id of its run."""

    identifier = TASKS_EXTENSION_ID

    def __init__(self, front: Front, drain: Drain) -> None:
        """Answer where *front* says; *drain* is asked before every run."""
        self._front = front
        self._drain = drain

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods that the extension adds to the protocol."""
        return (
            MethodBinding("tasks/get", TaskParams, self._get, MODERN),
            MethodBinding("tasks/update", TaskAnswers, self._update, MODERN),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, MODERN),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, context: Context, call_next: CallTool
    ) -> ToolResult | BaseModel:
        """Make a task of the call if its client wishes that; nobody else has a say in it."""
        arguments = params.arguments or {}
        if params.name != RUN or not _is_wished(context) or not _is_sound(arguments):
            return await call_next()
        if arguments.get("session"):
            return _refusal(NO_SESSION, "ValueError")
        return await self._drain.answer(lambda: self._make(context, arguments["command"]))

    async def _make(self, ctx: Context, command: str) -> ToolResult | BaseModel:
        async with self._front.receive(ctx) as (workspace, caller):
            tools = workspace.run_tools()
            try:
                begun = await tools.begin(caller, command, "")
                status = _require_found(await tools.book.status(caller.principal, begun["id"]))
            except OneToolError as error:
                return _refusal(f"{type(error).__name__}: {error}", type(error).__name__)
            except ValueError as error:
                return _refusal(str(error), "ValueError")
            return _form(ctx, workspace).describe_made(status)

    async def _get(self, request: Any, params: TaskParams) -> WireTask:
        async with self._receive(request, params) as (ctx, workspace, caller):
            status = await workspace.run_tools().status(caller.principal, params.task_id)
            return _form(ctx, workspace).describe(_require_found(status))

    async def _update(self, request: Any, params: TaskAnswers) -> dict[str, Any]:
        async with self._receive(request, params) as (_, workspace, caller):
            book = workspace.run_tools().book
            status = _require_found(await book.status(caller.principal, params.task_id))
            if status.question and (answer := _answer(params, question_key(status))):
                await book.answer(caller.principal, params.task_id, status.question["number"], answer)
            return {}

    async def _cancel(self, request: Any, params: TaskParams) -> dict[str, Any]:
        async with self._receive(request, params) as (_, workspace, caller):
            _require_found(await workspace.run_tools().book.cancel(caller.principal, params.task_id))
            return {}

    @asynccontextmanager
    async def _receive(self, request: Any, params: TaskParams) -> AsyncGenerator[tuple[Context, Workspace, Caller]]:
        """Yield who asks for a task and where; what goes wrong is an error of the protocol, with its reason."""
        if self.client_settings(request) is None:
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, UNDECLARED, dict(NEEDED))
        _check_route(request, params.task_id)
        ctx = Context(self.server)
        try:
            async with self._front.receive(ctx) as (workspace, caller):
                yield ctx, workspace, caller
        except (OneToolError, ToolError) as error:
            raise MCPError(INTERNAL_ERROR, f"{type(error).__name__}: {error}") from None


def _refusal(text: str, error: str) -> ToolResult:
    return ToolResult(content=text, meta={META: {"error": error}}, is_error=True)


def _is_wished(ctx: Context) -> bool:
    if not is_modern(ctx) or ctx.client_extension_settings(TASKS_EXTENSION_ID) is None:
        return False
    request: Any = ctx.request_context
    return read_meta({"_meta": request.meta}).get(WISH) is True


def _is_sound(arguments: Mapping[str, Any]) -> bool:
    """Return whether a task can be made of these; the tool itself says what is wrong with others."""
    return isinstance(arguments.get("command"), str) and isinstance(arguments.get("session", ""), str)


def _check_route(request: Any, task: str) -> None:
    """Refuse a request that a balancer has sent to wherever another task is meant."""
    named = request.request.headers.get(MCP_NAME_HEADER) if request.request is not None else None
    if named is not None and decode_header_value(named) != task:
        raise MCPError(HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} does not name the task of the request")


def _require_found(status: RunStatus | None) -> RunStatus:
    """Return *status*; an unknown id and somebody else's are told alike."""
    if status is None:
        raise MCPError(INVALID_PARAMS, NOT_FOUND)
    return status


def _answer(params: TaskAnswers, key: str) -> Mapping[str, Any] | None:
    try:
        return params.answer(key)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, f"the answer to {key} is malformed") from None


def _form(ctx: Context, workspace: Workspace) -> TaskForm:
    return TaskForm(time.time(), workspace.picture.loaded.config.ledger.days, modes_of(ctx))
