"""Calls a tool, and goes on calling when the server wants to know something first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, ErrorData, InputRequiredResult

MOST_ROUNDS = 10
STATE_ONLY_SECONDS = 0.1
"""The pause before a server is asked again that wants nothing but time."""


async def call_in_rounds(
    session: ClientSession, tool: str, arguments: Mapping[str, Any], progress: ProgressFnT
) -> CallToolResult:
    """Return the tool's result; what the server asks for meanwhile is answered as any question of it is.

    Raises:
        MCPError: The server answered with an error, or a question was refused.
        RuntimeError: The server never had enough.
    """
    answers: dict[str, Any] | None = None
    state: str | None = None
    for _ in range(MOST_ROUNDS):
        # Calling again with answers is what the protocol asks for, and no repetition.
        result = await session.call_tool(
            tool,
            dict(arguments),
            progress_callback=progress,
            input_responses=answers,
            request_state=state,
            allow_input_required=True,
        )
        if not isinstance(result, InputRequiredResult):
            return result
        answers, state = await _answers(session, result), result.request_state
    raise RuntimeError(f"the server asked more than {MOST_ROUNDS} times before it answered")


async def _answers(session: ClientSession, wanted: InputRequiredResult) -> dict[str, Any] | None:
    if not wanted.input_requests:
        await asyncio.sleep(STATE_ONLY_SECONDS)
        return None
    answers: dict[str, Any] = {}
    for key, request in wanted.input_requests.items():
        context = ClientRequestContext(session=session, request_id=key, meta=None)
        answer = await session.dispatch_input_request(context, request)
        if isinstance(answer, ErrorData):
            raise MCPError.from_error_data(answer)
        answers[key] = answer
    return answers
