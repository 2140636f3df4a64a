"""LanguageModel: the model that tools may ask, as they see it, and what it may cost a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def spend_question(self) -> None:
        """Count one request to the model.

        Raises:
            ChatError: There is none left, or no token.
        """
        if self._questions >= self._most_questions:
            raise _used_up(f"asked the model {self._most_questions:,} times", "chat.tool_questions")
        if self._tokens >= self._most_tokens:
            raise _used_up(f"used {self._tokens:,} tokens of the model", "chat.tool_tokens")
        self._questions += 1

    def spend_tokens(self, tokens: int) -> None:
        """Count the tokens of a question and its answer, which are known when it has been answered."""
        self._tokens += tokens


def _used_up(what: str, setting: str) -> ChatError:
    return ChatError(f"the tools of this run have {what}, and may do no more: ask less in one run, or raise {setting}")
