"""Answers a server's question by asking the user of the call."""

from __future__ import annotations

from typing import Any

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from ot.errors import CannotAsk
from ot.execution.ask_user import Question
from ot.execution.call_context import CallContext
from ot.registry.clean_text import clean_text

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
MAX_MESSAGE = 4000


async def answer_elicitation(context: CallContext | None, params: ElicitRequestParams, server: str) -> ElicitResult:
    """Return the user's answer to *server*; ``cancel`` when nobody can be asked: that is no refusal of the user's."""
    if context is None or context.ask is None:
        return ElicitResult(action="cancel")
    try:
        answer = await context.ask(_question(params, server))
    except CannotAsk:
        return ElicitResult(action="cancel")
    content: Any = dict(answer.content) if answer.action == "accept" else None
    return ElicitResult(action=answer.action, content=content)


def _question(params: ElicitRequestParams, server: str) -> Question:
    # Who asks is said by us: a server could write as if it were OneTool.
    message = f"The server '{server}' asks: {params.message}"
    if isinstance(params, ElicitRequestFormParams):
        return Question(clean_text(message, MAX_MESSAGE), params.requested_schema)
    return Question(clean_text(f"{message}\n{params.url}", MAX_MESSAGE), NOTHING)
