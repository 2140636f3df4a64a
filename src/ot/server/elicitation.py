"""Asks through the client: its user, in the way of the protocol's era, and the client itself for its roots."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import anyio
from fastmcp import Context
from mcp import MCPError, ServerSession
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ot.errors import CannotAsk
from ot.execution.caller import Answer, AskUser, Question
from ot.servers.place import AskRoots, Roots

KEY = "answer"
"""Under which the one question of a reply stands, and its answer in the next request."""
UNSENT = (ValueError, TypeError, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What making and sending a request raises when it cannot be written, or when the connection has ended."""
NO_ELICITATION = "the client cannot put questions to its user (it offers no elicitation)"


@dataclass(frozen=True)
class ClientQuestion:
    """Asks in the handshake era, by a request to the client."""

    session: ServerSession
    request_id: str
    seconds: float

    async def __call__(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            CannotAsk: The client did not take the question, or nobody answered in time.
        """
        try:
            async with asyncio.timeout(self.seconds):
                result = await self.session.elicit_form(
                    question.message, dict(question.schema), related_request_id=self.request_id
                )
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {self.seconds:g} s") from None
        except MCPError as error:
            raise CannotAsk(f"the client refused the question: {str(error)[:200]}") from None
        except ValidationError:
            raise CannotAsk("the client's answer could not be read") from None
        except UNSENT as error:
            raise CannotAsk(f"the question could not be sent: {type(error).__name__}") from None
        return Answer(result.action, result.content or {})


async def nobody(question: Question) -> Answer:
    """Answer nothing: the client offers no elicitation."""
    raise CannotAsk(NO_ELICITATION)


def is_modern(ctx: Context) -> bool:
    """Return whether the client is to be asked by a result instead of a request."""
    request: Any = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: Context) -> bool:
    """Return whether the client says that it puts forms before its user."""
    offered = ctx.session.client_capabilities
    modes = offered.elicitation if offered else None
    # No mode at all is how clients before 2025-11-25 say form.
    return modes is not None and (modes.form is not None or modes.url is None)


def way_to_ask(ctx: Context, seconds: float) -> AskUser:
    """Return how to ask over a connection of the handshake era."""
    # Taken now: a proxied server's question comes in a task of its connection, which knows nothing of this request.
    return ClientQuestion(ctx.session, ctx.request_id, seconds) if can_ask(ctx) else nobody


def input_required(question: Question, token: str) -> InputRequiredResult:
    """Return what tells a client of the modern era to ask its user and to call again."""
    params = ElicitRequestFormParams(message=question.message, requested_schema=dict(question.schema))
    return InputRequiredResult(input_requests={KEY: ElicitRequest(params=params)}, request_state=token)


def answer_of(ctx: Context) -> Answer:
    """Return the answer that came with a request; anything but an answer counts as none."""
    result = (ctx.input_responses or {}).get(KEY)
    if not isinstance(result, ElicitResult):
        return Answer("cancel")
    return Answer(result.action, result.content or {})


def way_to_list_roots(ctx: Context) -> AskRoots | None:
    """Return how to ask for the roots of this client, or nothing when it offers none."""
    session = ctx.session
    offered = session.client_capabilities
    if is_modern(ctx) or offered is None or offered.roots is None:
        return None

    async def ask() -> Roots:
        try:
            # Not list_roots(): that is marked as old, and the clients that know nothing newer are meant here.
            found = await session.send_request(ListRootsRequest(), ListRootsResult)
        except (MCPError, ValidationError):
            return ()
        return [(str(root.uri), root.name or "") for root in found.roots]

    return ask
