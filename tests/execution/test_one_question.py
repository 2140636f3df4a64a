"""A question that cannot be sent is no question: who asked is told that nobody could be."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from answers import YES, User
from ot.errors import CannotAsk
from ot.execution.ask_user import Question
from ot.execution.deadline import Deadline
from ot.execution.one_question import OneQuestion
from ot.server.elicitation import ClientQuestion

pytestmark = pytest.mark.anyio

LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "question",
    [
        Question("half \ud800", {}),
        Question("ok", {"title": "\udfff"}),
        Question("ok", {"default": object()}),
        Question("ok", {"enum": LOOP}),
        Question("x" * 100_000, {}),
    ],
    ids=["message", "schema", "object", "loop", "long"],
)
async def test_what_has_no_form_on_a_wire_is_not_asked(question: Question) -> None:
    user = User(YES)
    with pytest.raises(CannotAsk, match="the question "):
        await OneQuestion(user, Deadline.after(10))(question)
    assert user.questions == []


class Session:
    """A session whose sending fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def elicit_form(self, *args: Any, **kwargs: Any) -> Any:
        raise self.error


def serialization_error() -> Exception:
    class Model(BaseModel):
        text: str

    try:
        Model(text="\ud800").model_dump_json()
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [serialization_error(), anyio.ClosedResourceError(), anyio.BrokenResourceError(), OSError("gone"), RuntimeError()],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_while_a_question_is_sent_says_that_nobody_could_be_asked(error: Exception) -> None:
    ask = ClientQuestion(Session(error), "1", 5)  # pyright: ignore[reportArgumentType] - stands for one
    with pytest.raises(CannotAsk, match="the question could not be sent"):
        await ask(Question("may I?", {}))
