"""Puts the questions of a run to the callback of the program that embeds OneTool."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ot.errors import CannotAsk
from ot.execution.caller import Answer, Question
from ot.execution.consent import MAX_CALLS

logger = logging.getLogger(__name__)

type Decision = Literal["once", "run", "always", "deny"]
"""What to do about a call that asks first.

Allow this one call, all calls of the tool in this run, the tool for good (written into the user's configuration), or
none of them in this run.
"""

type Ask = Callable[[Question], Decision | Mapping[str, Any] | Awaitable[Decision | Mapping[str, Any]]]
"""Answers a question of a run; a plain function is called in a thread.

Consent to call a tool is given by a `Decision`. Where a server asks for data (`kind` is "form"), a mapping that fits
the question's `schema` is the answer and "deny" declines. Where an address is to be opened (`kind` is "url"), an empty
mapping says that the person agreed to open the question's `url`. Whatever else is returned counts as "deny".
"""

ALLOWED: Mapping[object, Mapping[str, Any]] = {
    "once": {"decision": "allow", "up_to": 1},
    "run": {"decision": "allow", "up_to": MAX_CALLS},
    "always": {"decision": "always"},
}


@dataclass(frozen=True)
class CallbackQuestion:
    """Asks through a callback, within a time."""

    ask: Ask
    seconds: float

    async def __call__(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            CannotAsk: The callback failed, or took too long.
        """
        try:
            async with asyncio.timeout(self.seconds):
                answer = await self._call_back(question)
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {self.seconds:g} s") from None
        except Exception as error:
            logger.exception("the ask callback failed")
            raise CannotAsk(f"the ask callback failed with {type(error).__name__}") from None
        return _answer(question, answer)

    async def _call_back(self, question: Question) -> object:
        if inspect.iscoroutinefunction(self.ask):
            return await self.ask(question)
        answer: object = await asyncio.to_thread(self.ask, question)
        return await answer if inspect.isawaitable(answer) else answer


def _answer(question: Question, answer: object) -> Answer:
    if question.kind != "consent":
        given = cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else None
        return Answer("decline") if given is None else Answer("accept", given)
    content = ALLOWED.get(answer) if isinstance(answer, str) else None
    return Answer("accept", content) if content else Answer("decline")
