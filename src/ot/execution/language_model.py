"""LanguageModel: the model that tools may ask, as they see it, and what it may cost a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Protocol

from ot.config.models import Chat
from ot.errors import ChatError


class LanguageModel(Protocol):
    """The model that tools may ask: ``ask`` and ``extract`` block a plain function, the others are awaited."""

    def ask(self, text: str) -> str:
        """Return the model's answer to *text*."""
        ...

    def extract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return what *text* asks for as an object that fits the JSON schema *schema*."""
        ...

    async def aask(self, text: str) -> str:
        """Return as ``ask``, for a coroutine."""
        ...

    async def aextract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return as ``extract``, for a coroutine."""
        ...

    def within(self, *, questions: int | None = None, tokens: int | None = None) -> LanguageModel:
        """Return the same model for a part of what the run may ask."""
        ...


type OpenModel = Callable[[], LanguageModel]
"""Returns the model of one run; raises ChatError where none is configured. It may take its time."""


def no_model() -> LanguageModel:
    """Stand in for the model where there is none."""
    raise ChatError("there is no language model here: tools have one where OneTool serves them")


class ModelBudget:
    """What the tools of one run, all together, may still ask a model."""

    def __init__(self, chat: Chat) -> None:
        """Allow what *chat* does."""
        self._most_questions, self._most_tokens = chat.tool_questions, chat.tool_tokens
        self._questions = self._tokens = 0

    def require_question(self) -> None:
        """Return when one more request may be made.

        Raises:
            ChatError: There is none left, or no token.
        """
        if self._questions >= self._most_questions:
            raise self._used_up(f"asked the model {self._most_questions:,} times", "questions")
        if self._tokens >= self._most_tokens:
            raise self._used_up(f"used {self._tokens:,} tokens of the model", "tokens")

    def spend_question(self) -> None:
        """Count one request to the model.

        Raises:
            ChatError: There is none left, or no token.
        """
        self.require_question()
        self._questions += 1

    def spend_tokens(self, tokens: int) -> None:
        """Count the tokens of a question and its answer, which are known when it has been answered."""
        self._tokens += tokens

    def _used_up(self, what: str, kind: str) -> ChatError:
        return ChatError(
            f"the tools of this run have {what}, and may do no more: ask less in one run, or raise chat.tool_{kind}"
        )


class PartOfBudget(ModelBudget):
    """What one call may ask of what its run may: each question counts for both."""

    def __init__(self, whole: ModelBudget, questions: int | None, tokens: int | None) -> None:
        """Allow *questions* and *tokens* of *whole*; None: as much as that has."""
        self._whole = whole
        self._most_questions = inf if questions is None else questions
        self._most_tokens = inf if tokens is None else tokens
        self._questions = self._tokens = 0

    def require_question(self) -> None:
        """Return when one more request may be made, for the call and for its run."""
        super().require_question()
        self._whole.require_question()

    def spend_question(self) -> None:
        """Count one request for both."""
        self.require_question()
        self._whole.spend_question()
        self._questions += 1

    def spend_tokens(self, tokens: int) -> None:
        """Count the tokens for both."""
        super().spend_tokens(tokens)
        self._whole.spend_tokens(tokens)

    def _used_up(self, what: str, kind: str) -> ChatError:
        return ChatError(f"this call has {what}, and may do no more: ask less, or give it more (max_{kind})")
