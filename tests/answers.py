"""A user for tests: answers questions as it was told to, and remembers them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ot.execution.caller import Answer, Question

YES: Mapping[str, Any] = {"decision": "allow"}
NO: Mapping[str, Any] = {"decision": "deny"}

BIN = """
    import asyncio

    __ot_destructive__ = ["delete", "burn"]
    GONE = []
    BURNT = []


    async def delete(*, item: int = 0, note: str = "") -> int:
        GONE.append(item)
        await asyncio.sleep(0)
        return item


    def burn() -> str:
        BURNT.append(1)
        return "burnt"


    def gone() -> int:
        return len(GONE)


    def empty() -> int:
        gone = len(GONE)
        GONE.clear()
        return gone
"""
"""A pack whose tools ``delete`` and ``burn`` ask first."""


class User:
    """Answers each question with the next of *answers*, and the last one ever after; None is nobody there to click."""

    def __init__(self, *answers: Mapping[str, Any] | Answer | Exception | None) -> None:
        self._answers = list(answers)
        self.questions: list[Question] = []
        self.asked = asyncio.Event()

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        self.asked.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Answer) else Answer("accept", answer or {})
