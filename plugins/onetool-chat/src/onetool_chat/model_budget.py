"""ModelBudget: what the tools of one run, all together, may still ask a model."""

from __future__ import annotations

from math import inf

from onetool_chat.settings import Chat
from ot.errors import ChatError


class ModelBudget:
    """What the tools of one run, all together, may still ask a model."""

    def __init__(self, chat: Chat) -> None:
        """Allow what *chat* does."""
        self._most_questions, self._most_tokens = chat.tool_questions, chat.tool_tokens
        self._questions = self._tokens = 0

    def require_question(self) -> None:
        """Check that one more request may be made.

        Raises:
            ChatError: There is none left, or no token.
        """
        if self._questions >= self._most_questions:
            raise self._budget_error(f"asked the model {self._most_questions:,} times", "questions")
        if self._tokens >= self._most_tokens:
            raise self._budget_error(f"used {self._tokens:,} tokens of the model", "tokens")

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

    def _budget_error(self, what: str, kind: str) -> ChatError:
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
        """Check that one more request may be made, for the call and for its run."""
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

    def _budget_error(self, what: str, kind: str) -> ChatError:
        return ChatError(f"this call has {what}, and may do no more: ask less, or give it more (max_{kind})")
