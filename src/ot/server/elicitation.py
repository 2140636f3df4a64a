"""Asks through the client: its user, in the way of the protocol's era, and the client itself for its roots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
from fastmcp import Context
from mcp import MCPError, ServerSession
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ot.errors import CannotAsk
from ot.execution.caller import Answer, AskUser, Caller, Question
from ot.proxied.place import AskRoots, Roots

if TYPE_CHECKING:
    from ot.background.held_runs import HeldRun

KEY = "answer"
"""Under which the one question of a reply stands, and its answer in the next request."""
UNSENT = (ValueError, TypeError, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What making and sending a request raises when it cannot be written, or when the connection has ended."""
NO_ELICITATION = "the client cannot put questions to its user (it offers no elicitation)"
NO_ADDRESSES = "the client cannot show its user an address to open (it offers no URL elicitation)"


@dataclass(frozen=True)
class ClientQuestion:
    """Asks in the handshake era, by a request to the client."""

    session: ServerSession
    request_id: str
    seconds: float

    async def __call__(self, question: Question) -> Answer:
        """Return the answer; raise CannotAsk if the client did not take the question, or nobody answered in time."""
        try:
            async with asyncio.timeout(self.seconds):
                result = await self._ask(question)
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {self.seconds:g} s") from None
        except MCPError as error:
            raise CannotAsk(f"the client refused the question: {str(error)[:200]}") from None
        except ValidationError:
            raise CannotAsk("the client's answer could not be read") from None
        except UNSENT as error:
            raise CannotAsk(f"the question could not be sent: {type(error).__name__}") from None
        return Answer(result.action, result.content or {})

    async def _ask(self, question: Question) -> ElicitResult:
        ask, related = self.session, self.request_id
        if question.kind == "url":
            return await ask.elicit_url(question.message, question.url, token_hex(8), related_request_id=related)
        return await ask.elicit_form(question.message, dict(question.schema), related_request_id=related)


def is_modern(ctx: Context) -> bool:
    """Return whether the client is to be asked by a result instead of a request."""
    request: Any = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def can_ask(ctx: Context) -> bool:
    """Return whether the client says that it puts questions of any kind before its user."""
    offered = ctx.session.client_capabilities
    return offered is not None and offered.elicitation is not None


@dataclass(frozen=True)
class QuestionModes:
    """The kinds of questions that a client says it can put before its user: forms, and addresses to open."""

    form: bool
    opens: bool

    def allow(self, question: Question) -> bool:
        """Return whether *question* is of one of these kinds."""
        return self.opens if question.kind == "url" else self.form


def modes_of(ctx: Context) -> QuestionModes:
    """Return the kinds of question that this request's client can ask its user."""
    offered = ctx.session.client_capabilities
    modes = offered.elicitation if offered else None
    # No mode at all is how clients before 2025-11-25 say form.
    form = modes is not None and (modes.form is not None or modes.url is None)
    return QuestionModes(form, modes is not None and modes.url is not None)


class OpenCall:
    """The request that the client of a run waits with, as long as it does."""

    __slots__ = ("held", "id", "modern", "program")

    def __init__(self, id: str = "", program: object = None, *, modern: bool = True) -> None:
        """Stand for the request of that *id*, which asks for *program* in the *modern* era or the one before."""
        self.id = id
        self.modern = modern
        self.program = program
        self.held: HeldRun | None = None
        """The run, once a question of it waits at a terminal."""

    @property
    def is_answered(self) -> bool:
        """Whether the client was answered before the run was over."""
        return self.held is not None and self.held.left


type AskElsewhere = Callable[[QuestionModes, AskUser, Question], Awaitable[Answer]]
"""Puts a question where it reaches somebody, given what the client offers and how its user is asked."""


def answering(caller: Caller, modes: QuestionModes, ask: AskUser, elsewhere: AskElsewhere | None = None) -> Caller:
    """Return *caller* with *ask*, for the kinds of questions that *modes* allow, or with what asks *elsewhere*, too."""

    async def ask_client(question: Question) -> Answer:
        if elsewhere:
            return await elsewhere(modes, ask, question)
        if not modes.allow(question):
            raise CannotAsk(NO_ADDRESSES if question.kind == "url" else NO_ELICITATION)
        return await ask(question)

    return caller.with_ask(ask_client, modes.opens)


def who_answers(ctx: Context, caller: Caller, ask: AskUser, elsewhere: AskElsewhere | None = None) -> Caller:
    """Return *caller* with *ask*, for the kinds of questions that the client says it can put before its user."""
    return answering(caller, modes_of(ctx), ask, elsewhere)


def input_required(question: Question, token: str) -> InputRequiredResult:
    """Return the answer that tells a client of the modern era to ask its user and call again."""
    return InputRequiredResult(input_requests={KEY: elicit_request(question)}, request_state=token)


def elicit_request(question: Question) -> ElicitRequest:
    """Return *question* as the protocol has it."""
    params: ElicitRequestParams
    if question.kind == "url":
        params = ElicitRequestURLParams(message=question.message, url=question.url)
    else:
        params = ElicitRequestFormParams(message=question.message, requested_schema=dict(question.schema))
    return ElicitRequest(params=params)


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
