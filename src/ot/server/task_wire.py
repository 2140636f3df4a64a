"""What MCP's tasks extension says on the wire about a run in the background."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from mcp_types import CallToolResult, ElicitResult, RequestParams, TextContent
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ot.execution.caller import Question
from ot.ledger.background_run import ENDED, RunEnd, RunStatus
from ot.registry.announced_tool import META
from ot.server.elicitation import QuestionModes, elicit_request

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

    def made(self, status: RunStatus) -> WireTask:
        """Return the answer to the call that made the task, which carries neither question nor result."""
        return WireTask(result_type="task", status="working", **self._fields(status))

    def told(self, status: RunStatus) -> WireTask:
        """Return what is known of the task now."""
        if status.end is not None and status.state in ENDED:
            return self._ended(status, status.end)
        if request := self._request(status):
            return WireTask(status="input_required", input_requests=request, **self._fields(status))
        return WireTask(status="working", status_message=_message(status), **self._fields(status))

    def _ended(self, status: RunStatus, end: RunEnd) -> WireTask:
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
    """Return what the run's question is known by: no other question of the run ever has the same."""
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
    """Return what the call of the tool would have returned."""
    told: Mapping[str, str] = {"run": id, "state": end.state, "error": end.error, "result": end.handle}
    result = CallToolResult(
        content=[TextContent(type="text", text=text) for text in end.texts],
        is_error=end.state != "done",
        _meta={META: {name: value for name, value in told.items() if value}},
    )
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
