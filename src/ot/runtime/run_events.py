"""What whoever asked for a run is told while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ot.execution.caller import Answer, AskUser, Question


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The program calls a tool; the arguments are plain copies of what it gave."""

    run: str
    call: int
    tool: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has ended; ``error`` names what it failed with, ``chars`` is the size of the ``value`` it returned."""

    run: str
    call: int
    tool: str
    seconds: float
    error: str = ""
    chars: int = 0
    value: Any = None


@dataclass(frozen=True, slots=True)
class Printed:
    """The program, or the tool that is named, has printed something."""

    run: str
    text: str
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a tool has come, as it tells it."""

    done: Any = None
    total: Any = None
    message: str = ""
    tool: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A question goes to the user."""

    run: str
    question: Question


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The user has answered."""

    run: str
    question: Question
    answer: Answer


type RunEvent = CallStarted | CallEnded | Printed | Progress | QuestionAsked | QuestionAnswered
type TellEvent = Callable[[RunEvent], None]
"""Takes what happens in a run; must be quick and must not raise."""


def telling(ask: AskUser, run: str, tell: TellEvent) -> AskUser:
    """Return *ask*, telling of each question and of its answer."""

    async def ask_and_tell(question: Question) -> Answer:
        tell(QuestionAsked(run, question))
        answer = await ask(question)
        tell(QuestionAnswered(run, question, answer))
        return answer

    return ask_and_tell
