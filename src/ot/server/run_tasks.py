"""MCP tasks: a client that speaks the extension has ``run`` carried out in the background, and asks how it stands."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.tools import ToolResult
from fastmcp.utilities.tasks import TASKS_EXTENSION_ID
from mcp import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolRequestParams
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from ot.errors import OneToolError
from ot.execution.caller import Caller
from ot.ledger.background_run import RunStatus
from ot.registry.announced_tool import META, told_in
from ot.server.drain import Drain
from ot.server.elicitation import is_modern, modes_of
from ot.server.front import Front
from ot.server.task_wire import TaskAnswers, TaskForm, TaskParams, WireTask, question_key
from ot.workspace import Workspace

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
        """Return what the extension adds to the protocol."""
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
            return _refused(NO_SESSION, "ValueError")
        return await self._drain.answer(lambda: self._made(context, arguments["command"]))

    async def _made(self, ctx: Context, command: str) -> ToolResult | BaseModel:
        async with self._front.receive(ctx) as (workspace, caller):
            tools = workspace.run_tools()
            try:
                begun = await tools.begin(caller, command, "")
                status = _found(await tools.book.status(caller.principal, begun["id"]))
            except OneToolError as error:
                return _refused(f"{type(error).__name__}: {error}", type(error).__name__)
            except ValueError as error:
                return _refused(str(error), "ValueError")
            return _form(ctx, workspace).made(status)

    async def _get(self, request: Any, params: TaskParams) -> WireTask:
        async with self._received(request, params) as (ctx, workspace, caller):
            status = await workspace.run_tools().status(caller.principal, params.task_id)
            return _form(ctx, workspace).told(_found(status))

    async def _update(self, request: Any, params: TaskAnswers) -> dict[str, Any]:
        async with self._received(request, params) as (_, workspace, caller):
            book = workspace.run_tools().book
            status = _found(await book.status(caller.principal, params.task_id))
            if status.question and (answer := _answer(params, question_key(status))):
                await book.answer(caller.principal, params.task_id, status.question["number"], answer)
            return {}

    async def _cancel(self, request: Any, params: TaskParams) -> dict[str, Any]:
        async with self._received(request, params) as (_, workspace, caller):
            _found(await workspace.run_tools().book.cancel(caller.principal, params.task_id))
            return {}

    @asynccontextmanager
    async def _received(self, request: Any, params: TaskParams) -> AsyncGenerator[tuple[Context, Workspace, Caller]]:
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


def _refused(text: str, error: str) -> ToolResult:
    return ToolResult(content=text, meta={META: {"error": error}}, is_error=True)


def _is_wished(ctx: Context) -> bool:
    if not is_modern(ctx) or ctx.client_extension_settings(TASKS_EXTENSION_ID) is None:
        return False
    request: Any = ctx.request_context
    return told_in({"_meta": request.meta}).get(WISH) is True


def _is_sound(arguments: Mapping[str, Any]) -> bool:
    """Return whether a task can be made of these; the tool itself says what is wrong with others."""
    return isinstance(arguments.get("command"), str) and isinstance(arguments.get("session", ""), str)


def _check_route(request: Any, task: str) -> None:
    """Refuse a request that a balancer has sent to wherever another task is meant."""
    named = request.request.headers.get(MCP_NAME_HEADER) if request.request is not None else None
    if named is not None and decode_header_value(named) != task:
        raise MCPError(HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} does not name the task of the request")


def _found(status: RunStatus | None) -> RunStatus:
    """Return *status*; an unknown id and somebody else's are told alike."""
    if status is None:
        raise MCPError(INVALID_PARAMS, NOT_FOUND)
    return status


def _answer(params: TaskAnswers, key: str) -> Mapping[str, Any] | None:
    try:
        return params.answer(key)
    except ValidationError:
        raise MCPError(INVALID_PARAMS, f"the answer under {key} is malformed") from None


def _form(ctx: Context, workspace: Workspace) -> TaskForm:
    return TaskForm(time.time(), workspace.picture.loaded.config.ledger.days, modes_of(ctx))
