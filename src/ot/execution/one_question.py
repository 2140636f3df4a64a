"""OneQuestion: the questions of one run, one after the other, while the run's clock stands still."""

from __future__ import annotations

import asyncio
import json

from ot.errors import CannotAsk
from ot.execution.ask_user import Answer, AskUser, Question
from ot.execution.deadline import Deadline

MAX_QUESTIONS = 20
"""A run that asks more often than this wears its user out until yes is said to anything."""
MAX_BYTES = 64 << 10


class OneQuestion:
    """Asks through the way that the run was given, if there is one."""

    def __init__(self, ask: AskUser | None, deadline: Deadline) -> None:
        """Ask through *ask*, and stop the clock of *deadline* meanwhile."""
        self._ask = ask
        self._deadline = deadline
        self._turn = asyncio.Lock()
        self._left = MAX_QUESTIONS

    async def __call__(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            CannotAsk: Nobody can be asked here, nobody answered, the question cannot be sent, or the run has asked
                too often.
        """
        if self._ask is None:
            raise CannotAsk("nobody is there to answer")
        _require_sendable(question)
        with self._deadline.pause():
            async with self._turn:
                if not self._left:
                    raise CannotAsk(f"the run has asked {MAX_QUESTIONS} times already")
                self._left -= 1
                return await self._ask(question)


def _require_sendable(question: Question) -> None:
    """Return when *question* has a form on a wire: found out later, it would end the connection, not the call."""
    try:
        size = len(json.dumps([question.message, dict(question.schema)], ensure_ascii=False).encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise CannotAsk(f"the question cannot be sent: {type(error).__name__}") from None
    if size > MAX_BYTES:
        raise CannotAsk(f"the question has {size:,} bytes, at most {MAX_BYTES:,} are sent")
