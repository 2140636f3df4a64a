"""Questions of background runs: they wait in the book until somebody answers them, or nobody did in time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ot.errors import CannotAsk, LedgerUnavailable
from ot.execution.caller import Answer, AskUser, Question
from ot.ledger.background_run import BackgroundRun, RunStatus
from ot.ledger.run_book import RunBook

QUESTION_SECONDS = 86_400.0
"""How long each waits."""
NUMBERS = 1000
"""More than one start can ask: so the numbers of its questions are those of no other start."""
ACTIONS = frozenset(("accept", "decline", "cancel"))


class BackgroundQuestion(Question):
    """A question of a background run, put to the user of another client: it waits for one at a terminal already."""


class BookQuestions:
    """Asks through the book, for one start of a run."""

    def __init__(self, book: RunBook, id: str, start: int) -> None:
        """Keep the questions of this *start* in *book*."""
        self._book = book
        self._id = id
        self._start = start
        self.terminal: AskUser | None = None
        """Puts each to a person at a terminal, too."""
        self._numbers = itertools.count(start * NUMBERS + 1)
        self._open: tuple[int, asyncio.Future[Mapping[str, Any]]] | None = None

    async def ask(self, question: Question) -> Answer:
        """Return the answer that somebody gave.

        Raises:
            CannotAsk: Nobody answered in time, or the book is unavailable.
            RunFenced: Another start has taken the place of this one.
        """
        number = next(self._numbers)
        self._open = number, asyncio.get_running_loop().create_future()
        at_terminal = asyncio.ensure_future(self._ask_at_terminal(question, number))
        try:
            await self._book.ask(self._id, self._start, question_fields(question, number))
            async with asyncio.timeout(QUESTION_SECONDS):
                given = await self._open[1]
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {QUESTION_SECONDS:g} s") from None
        except LedgerUnavailable as error:
            raise CannotAsk(f"the question could not be kept: {error.why}") from None
        finally:
            self._open = None
            at_terminal.cancel()
            await self._go_on()
        return answer_of(given)

    async def _ask_at_terminal(self, question: Question, number: int) -> None:
        if self.terminal:
            with suppress(CannotAsk):  # others may still answer
                answer = await self.terminal(question)
                self.take({"number": number, "action": answer.action, "content": answer.content})

    async def _go_on(self) -> None:
        try:
            await self._book.ask(self._id, self._start, None)
        except LedgerUnavailable:
            return  # the next call that changes something finds that out

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take the answer that the book has, if it is one to the question that is open."""
        if self._open is None:
            return
        number, future = self._open
        if answer.get("number", number) == number and not future.done():
            future.set_result(answer)


def question_fields(question: Question, number: int) -> dict[str, Any]:
    """Return *question* as the book keeps it; the arguments of the call are in its message, redacted and cut."""
    fields = {"number": number, "message": question.message, "schema": dict(question.schema), "kind": question.kind}
    return fields | {"tool": question.tool, "url": question.url}


def question_of(fields: Mapping[str, Any], run: BackgroundRun) -> Question:
    """Rebuild the question from its ``question_fields``, for the user of another client.

    What the run's program supplied comes last: nothing that it says can be taken for the question.
    """
    origin = f"\nThe run is {run.origin}." if run.origin else ""
    message = f"The background run {run.id} asks:\n{fields['message']}{origin}"
    kind, url = fields.get("kind", "form"), fields.get("url", "")
    return BackgroundQuestion(message, fields["schema"], kind, fields.get("tool", ""), url=url)


def answer_of(fields: Mapping[str, Any]) -> Answer:
    """Return the answer that was written into the book; what is malformed is a no."""
    action, content = fields.get("action"), fields.get("content")
    if action not in ACTIONS or not isinstance(content or {}, Mapping):
        return Answer("decline")
    return Answer(action, content or {})


async def put_to_user(book: RunBook, status: RunStatus, ask: AskUser) -> bool:
    """Put the question of a run to the user who can be asked by *ask*; return whether it is answered now."""
    if status.state != "asks" or status.question is None:
        return False
    try:
        answer = await ask(question_of(status.question, status.run))
    except CannotAsk:
        return False
    if answer.action == "cancel":  # dismissed, not answered: another client may answer
        return False
    number = status.question["number"]
    fields = {"number": number, "action": answer.action, "content": dict(answer.content)}
    return await book.answer(status.run.principal, status.run.id, number, fields)
