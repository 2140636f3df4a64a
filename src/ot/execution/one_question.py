"""OneQuestion: the questions of one run, one after the other, while the run's clock stands still."""

from __future__ import annotations

import asyncio

from ot.errors import CannotAsk
from ot.execution.ask_user import Answer, AskUser, Question
from ot.execution.deadline import Deadline

MAX_QUESTIONS = 20
"""A run that asks more often than this wears its user out until yes is said to anything."""


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
            CannotAsk: Nobody can be asked here, nobody answered, or the run has asked too often.
        """
        if self._ask is None:
            raise CannotAsk("nobody is there to answer")
        with self._deadline.pause():
            async with self._turn:
                if not self._left:
                    raise CannotAsk(f"the run has asked {MAX_QUESTIONS} times already")
                self._left -= 1
                return await self._ask(question)
