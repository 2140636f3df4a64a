"""What a server wants to know during a call, and the call that goes on when it was told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    RequestParamsMeta,
)

from ot.errors import CannotAsk
from ot.execution.call_context import CallContext
from ot.execution.caller import Question
from ot.registry.clean_text import clean_line, clean_text
from ot.visible_text import quote

logger = logging.getLogger(__name__)

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
MAX_MESSAGE, MAX_WORDS, MAX_DATA = 4000, 500, 2000
MAX_PARTS = 500
DATA = frozenset({"enum", "const", "default", "required", "pattern"})
"""Parts of a form that an answer is made of, and that are not words to a person."""
MAX_ROUNDS = 10
"""Answers that one call may ask for."""
STATE_ONLY_SECONDS = 0.1
"""The pause before a server is asked again that wants nothing but time."""


async def answer_elicitation(context: CallContext | None, params: ElicitRequestParams, server: str) -> ElicitResult:
    """Return the user's answer to *server*; ``cancel`` when nobody can be asked, since the user has not refused."""
    if context is None or context.caller.ask is None:
        return ElicitResult(action="cancel")
    try:
        answer = await context.caller.ask(_question(params, server))
    except CannotAsk as error:
        logger.warning("the server %s asked its user something: %s", server, error)
        return ElicitResult(action="cancel")
    content: Any = dict(answer.content) if answer.action == "accept" else None
    return ElicitResult(action=answer.action, content=content)


def _question(params: ElicitRequestParams, server: str) -> Question:
    """Return the question in words that say who asks, and cannot look as if OneTool itself did.

    Raises:
        CannotAsk: Its form cannot be put before a person as it is.
    """
    # Its further lines are indented: none can be taken for OneTool's own.
    said = clean_text(params.message, MAX_MESSAGE).replace("\n", "\n    ")
    message = f"The server {quote(server)} asks: {said}"
    if not isinstance(params, ElicitRequestFormParams):
        return Question(message, NOTHING, "url", url=_address(params.url))
    _require_small(params.requested_schema)
    return Question(message, _clean(params.requested_schema))


def _address(url: str) -> str:
    """Return an address that a person can read and a browser may open."""
    if not url.startswith(("https://", "http://")) or " " in url or clean_line(url, MAX_DATA) != url:
        raise CannotAsk("it asks to open something other than a plain web address")
    return url


def _require_small(schema: Mapping[str, Any]) -> None:
    waiting: list[Any] = [schema]
    for _ in range(MAX_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
    raise CannotAsk(f"its form has more than {MAX_PARTS} parts")


def _clean(part: Any, is_data: bool = False) -> Any:
    """Return a form whose words show all that they hold; what is sent back as an answer stays as it is."""
    if isinstance(part, Mapping):
        entries = cast("Mapping[Any, Any]", part).items()
        return {_data(key): _clean(value, key in DATA) for key, value in entries}
    if isinstance(part, list):
        return [_clean(value, is_data) for value in cast("list[Any]", part)]
    if isinstance(part, str):
        return _data(part) if is_data else clean_line(part, MAX_WORDS)
    return part


def _data(text: Any) -> str:
    """Return the answer's data unchanged: cleaned, it would be another answer."""
    if not isinstance(text, str) or "\n" in text or clean_text(text, MAX_DATA) != text:
        raise CannotAsk("its form has a name or a choice that cannot be displayed safely")
    return text


async def call_in_rounds(
    session: ClientSession,
    tool: str,
    arguments: Mapping[str, Any],
    progress: ProgressFnT,
    meta: Mapping[str, Any] | None = None,
) -> CallToolResult:
    """Return the tool's result; what the server asks for meanwhile is answered as any question of it is.

    Raises:
        MCPError: The server answered with an error, or a question was refused.
        RuntimeError: The server never had enough.
    """
    answers: dict[str, Any] | None = None
    state: str | None = None
    for _ in range(MAX_ROUNDS):
        # Calling again with answers is what the protocol asks for, and no repetition.
        result = await session.call_tool(
            tool,
            dict(arguments),
            progress_callback=progress,
            input_responses=answers,
            request_state=state,
            meta=cast("RequestParamsMeta", dict(meta)) if meta else None,
            allow_input_required=True,
        )
        if not isinstance(result, InputRequiredResult):
            return result
        answers, state = await _answers(session, result), result.request_state
    raise RuntimeError(f"the server asked more than {MAX_ROUNDS} times before it answered")


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
