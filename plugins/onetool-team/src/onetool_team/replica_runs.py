"""ReplicaRuns: runs that another replica holds, asked there, and those of this one that others ask about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastmcp import Context
from fastmcp.tools import ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from mcp_types import CallToolResult, InputRequiredResult

from onetool_team.state.open_state import Shared
from onetool_team.state.presence import Presence
from onetool_team.state.replica_mail import OPERATOR, AnswerOperator, ReplicaGone, ReplicaMail, TellNews
from onetool_team.state.session_replicas import SessionReplicas
from onetool_team.state.shared_state import StateUnavailable
from ot.errors import SessionLost
from ot.execution.caller import Answer, AskUser, Caller
from ot.runtime.reply import Reply
from ot.runtime.run_events import Progress, RunEvent, TellEvent
from ot.runtime.sessions import NAME as SESSION_NAME
from ot.server.elicitation import QuestionModes, answer_of, answering, can_ask, is_modern, modes_of
from ot.server.other_replicas import Elsewhere, Here
from ot.server.parked_runs import NotParked
from ot.workspace import Workspace

MAX_BYTES = 4 << 20
"""Of a reply that one replica hands to another."""
GONE = (
    "ReplicaGone: the replica that held this run is gone, and the run with it. Calls of tools that it had made by then "
    "have taken effect. Run the program again"
)
SESSION_GONE = "the replica that held it is gone"
UNREACHABLE = "StateUnavailable: {what}, and nothing has run: {why}. Runs without a session work. Try again in a moment"
ANSWER_UNREACHABLE = "the run that asked is held by another replica, which cannot be asked now"
SESSION_UNREACHABLE = "session '{}' may be held by another replica, which cannot be asked now"
TOO_LARGE = (
    "ReplyTooLarge: the run is over and its calls have taken effect, but its reply of {size:,} bytes is larger than "
    "replicas hand to each other ({most:,}). Return less, or keep it with ot.session(action='save')"
)
FAILED = "ReplicaFailed: the replica that holds this run could not go on with it; its log says why"


class ReplicaRuns:
    """Finds out which replica holds a run or a session, and has it go on there."""

    def __init__(self, shared: Shared, here: Here, answer_operator: AnswerOperator | None = None) -> None:
        """Answer others with what is *here*, and the operator with *answer_operator*."""
        self._here = here
        self._answer_operator = answer_operator
        self._presence = Presence(shared.state)
        self._sessions = SessionReplicas(shared.state, shared.keys, self._presence)
        self._mail = ReplicaMail(shared.state, shared.keys, self._presence, self._handle)
        here.parked.replica = self._presence.me

    async def start(self) -> None:
        """Be there for the other replicas."""
        await self._mail.start()
        await self._presence.start()

    async def aclose(self) -> None:
        """Be there no more."""
        await self._presence.aclose()
        await self._mail.aclose()

    async def elsewhere(
        self, command: str, session: str, workspace: Workspace, caller: Caller, ctx: Context
    ) -> Elsewhere | None:
        """Return how to get the result from another replica, or nothing if this one has to answer."""
        token = ctx.request_state
        if token is not None:
            return self._find_answerer(token, caller, answer_of(ctx))
        if not SESSION_NAME.match(session):
            return None  # no session is named, or its name is refused here
        try:
            idle = workspace.picture.loaded.config.sessions.idle_seconds
            owner = await self._sessions.owner(caller.seat, session, idle)
        except StateUnavailable as error:
            if workspace.sessions.holds(caller.seat, session):
                return None
            return partial(_say, UNREACHABLE.format(what=SESSION_UNREACHABLE.format(session), why=error))
        if owner == self._presence.me:
            return None
        modes = modes_of(ctx) if is_modern(ctx) and can_ask(ctx) else None
        return partial(self._run_by, owner, _run_letter(command, session, caller, modes), caller, session)

    # ---------------------------------------------------------------- asking others

    def _find_answerer(self, token: str, caller: Caller, answer: Answer) -> Elsewhere | None:
        owner, dot, _ = token.partition(".")
        if not dot or owner == self._presence.me:
            return None
        said = {"action": answer.action, "content": dict(answer.content)}
        return partial(self._continue_at, owner, {"token": token, "seat": caller.seat, "answer": said})

    async def _continue_at(self, owner: str, letter: Mapping[str, Any], tell: TellEvent | None) -> ToolResult:
        try:
            return _from_wire(await self._mail.ask(owner, "answer", letter, _as_progress(tell)))
        except ReplicaGone:
            return _error(GONE)
        except StateUnavailable as error:
            return _error(UNREACHABLE.format(what=ANSWER_UNREACHABLE, why=error))

    async def _run_by(
        self, owner: str, letter: Mapping[str, Any], caller: Caller, session: str, tell: TellEvent | None
    ) -> ToolResult:
        try:
            return _from_wire(await self._mail.ask(owner, "run", letter, _as_progress(tell)))
        except ReplicaGone:
            return await self._session_lost(caller, session)
        except StateUnavailable as error:
            return _error(UNREACHABLE.format(what=SESSION_UNREACHABLE.format(session), why=error))

    async def _session_lost(self, caller: Caller, session: str) -> ToolResult:
        try:
            await self._sessions.forget(caller.seat, session)
        except StateUnavailable as error:
            return _error(UNREACHABLE.format(what=SESSION_UNREACHABLE.format(session), why=error))
        return _error(f"SessionLost: {SessionLost(session, SESSION_GONE)}")

    # ---------------------------------------------------------------- being asked

    async def _handle(self, kind: str, letter: Mapping[str, Any], news: TellNews) -> Mapping[str, Any]:
        if self._answer_operator and kind.startswith(OPERATOR):
            return await self._answer_operator(kind.removeprefix(OPERATOR), letter)

        def tell(event: RunEvent) -> None:
            if isinstance(event, Progress):
                news(_plain({"done": event.done, "total": event.total, "message": event.message}))

        goes_on = kind == "answer"
        work = partial(self._continue if goes_on else self._run, letter, tell)
        return _to_wire(await self._here.drain.answer(work, goes_on=goes_on))

    async def _continue(self, letter: Mapping[str, Any], tell: TellEvent) -> ToolResult:
        try:
            run = self._here.parked.take(letter["token"], letter["seat"])
        except NotParked as error:
            return _error(str(error))
        run.answer(Answer(letter["answer"]["action"], letter["answer"]["content"]), letter["token"])
        return await self._here.turn(run, tell)

    async def _run(self, letter: Mapping[str, Any], tell: TellEvent) -> ToolResult:
        about = letter["caller"]
        caller = Caller(
            about["principal"],
            about["connection"],
            about["client"],
            groups=frozenset(about["groups"]),
            admin=about["admin"],
        )
        async with self._here.enter(caller.principal) as workspace:
            work = partial(workspace.run, letter["command"], session=letter["session"])
            if letter["modes"] is None:
                return self._here.result(await work(caller=caller, tell=tell))
            modes = QuestionModes(**letter["modes"])

            async def start(ask: AskUser, tell: TellEvent) -> Reply:
                return await work(caller=answering(caller, modes, ask), tell=tell)

            most = workspace.most_parked
            run = self._here.parked.start(start, caller.seat, workspace.ask_seconds, most)
            return await self._here.turn(run, tell)


def _run_letter(command: str, session: str, caller: Caller, modes: QuestionModes | None) -> dict[str, Any]:
    about = {
        "principal": caller.principal,
        "connection": caller.connection,
        "client": caller.client,
        "groups": sorted(caller.groups),
        "admin": caller.admin,
    }
    asks = {"form": modes.form, "opens": modes.opens} if modes else None
    return {"command": command, "session": session, "caller": about, "modes": asks}


def _as_progress(tell: TellEvent | None) -> TellNews | None:
    return (lambda news: tell(Progress(**news))) if tell else None


def _to_wire(result: ToolResult) -> Mapping[str, Any]:
    """Return a result as JSON that another replica reads, or that it is too large for that."""
    if isinstance(result, InputRequiredToolResult):
        return {"asks": result.input_required.model_dump(mode="json", by_alias=True, exclude_none=True)}
    whole = CallToolResult.model_validate(
        {"content": result.content, "isError": result.is_error, "_meta": result.meta}
        | ({"structuredContent": result.structured_content} if result.structured_content is not None else {})
    )
    wire = whole.model_dump_json(by_alias=True, exclude_none=True)
    if len(wire) > MAX_BYTES:
        return _to_wire(_error(TOO_LARGE.format(size=len(wire), most=MAX_BYTES)))
    return {"result": json.loads(wire)}


def _from_wire(wire: Mapping[str, Any]) -> ToolResult:
    if asks := wire.get("asks"):
        return InputRequiredToolResult(InputRequiredResult.model_validate(asks))
    if result := wire.get("result"):
        return ToolResult.from_mcp_result(CallToolResult.model_validate(result))
    return _error(FAILED)


def _plain(news: Mapping[str, Any]) -> dict[str, Any]:
    """Return *news* of a tool as what JSON can hold."""
    return {key: value if isinstance(value, int | float | str | None) else str(value) for key, value in news.items()}


async def _say(text: str, _tell: TellEvent | None) -> ToolResult:
    return _error(text)


def _error(text: str) -> ToolResult:
    error = text.partition(":")[0]
    return ToolResult(content=text, meta={"onetool": {"error": error}}, is_error=True)
