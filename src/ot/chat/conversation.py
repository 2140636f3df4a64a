"""Conversation: questions to a model, the tools that it asks for meanwhile, and a history that stays valid."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ot.chat.chat_client import ChatClient, Message, ToolCall, Turn, Usage
from ot.chat.chat_tools import ToolAnswer, ToolOffer
from ot.chat.retries import Retries
from ot.errors import ChatRefused, ChatTimeout, TooManyTurns

logger = logging.getLogger(__name__)

CANCELLED = "the call was cancelled; whether it took effect is unknown"
NOT_MADE = "the call was not made: the question has used up its turns"
STOPPED = "[the user stopped the answer here]"
FULL = 0.8
"""The share of a context above which the oldest questions are forgotten."""
TOKEN = 4
"""Characters of a token, about, where a service does not count them."""
SHORT = 2000
"""Characters that are left of a tool's answer when the service has refused what it was part of."""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What came of one question."""

    text: str
    usage: Usage
    turns: int
    stop: str = ""


class ChatWatcher:
    """Sees a question being answered, and looks away; what overrides this must be quick and must not raise."""

    def said(self, text: str) -> None:
        """Take a piece of the answer."""

    def calling(self, call: ToolCall) -> None:
        """Take note that a tool is called."""

    def called(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Take note of what a tool answered."""

    def forgot(self, questions: int, context_tokens: int) -> None:
        """Take note that the oldest questions left the history, which came near to *context_tokens*."""


class Conversation:
    """One history with one model; questions are answered one after the other."""

    def __init__(
        self,
        client: ChatClient,
        tools: ToolOffer,
        *,
        turns: int = 25,
        seconds: float = 600.0,
        context_tokens: int = 0,
        retries: Retries | None = None,
        watcher: ChatWatcher | None = None,
    ) -> None:
        """Ask *client*, which may call *tools*, at most *turns* times and *seconds* long for a question.

        Where *context_tokens* are known, the oldest questions are forgotten before the history outgrows them.
        """
        self.client = client
        """Who answers; another of the same provider may take its place between questions."""
        self._tools = tools
        self._most_turns = turns
        self._seconds = seconds
        self._context_tokens = context_tokens
        self._used_tokens = 0
        """What the history took when the model last answered."""
        self._retries = retries or Retries()
        self._watcher = watcher or ChatWatcher()
        self._one_at_a_time = asyncio.Lock()
        self._partial = ""
        """What the model has said in the turn that is under way."""
        self._noted: list[tuple[int, Sequence[tuple[ToolCall, ToolAnswer]]]] = []
        """Where in the history the tools' answers to this question are, and what they said."""
        self.history: list[Message] = []
        self.usage = Usage()

    async def ask(self, question: str) -> ChatAnswer:
        """Return the model's answer.

        Whatever happens, the history stays one that a provider takes: every call in it has its answer, and of a
        question that failed stays only what tools have done for it.

        Raises:
            ChatError: There is none; the class says why.
        """
        async with self._one_at_a_time:
            deadline = time.monotonic() + self._seconds
            self._forget_oldest()
            start = len(self.history)
            self._noted, self._partial = [], ""
            self.history.append({"role": "user", "content": question})
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._answer(deadline)
            except BaseException as error:
                self._settle(start, error)
                if isinstance(error, TimeoutError):
                    raise ChatTimeout(self._seconds) from None
                raise

    def clear(self) -> None:
        """Begin anew; what was used up stays counted."""
        self.history.clear()
        self._used_tokens = 0

    def _forget_oldest(self) -> None:
        """Drop the oldest questions with all that came of them, about half of the history, when it is nearly full."""
        if not self._context_tokens or self._used_tokens <= FULL * self._context_tokens:
            return
        sizes = [len(json.dumps(message)) for message in self.history]
        # Only there can a history begin: a call and its answer stay together.
        starts = [n for n, one in enumerate(self.history) if one["role"] == "user" and isinstance(one["content"], str)]
        cut = next((n for n in starts if 2 * sum(sizes[n:]) <= sum(sizes)), len(self.history))
        forgotten = sum(n < cut for n in starts)
        del self.history[:cut]
        self._used_tokens = 0
        self._watcher.forgot(forgotten, self._context_tokens)

    def _settle(self, start: int, error: BaseException) -> None:
        """Leave a history that the provider takes, after a question that ended with *error*."""
        if isinstance(error, ChatRefused):
            self._shorten()
        if isinstance(error, TimeoutError | asyncio.CancelledError) and (said := self._partial.strip()):
            self.history.append({"role": "assistant", "content": f"{said} {STOPPED}"})
        if len(self.history) == start + 1:  # nothing has come of it
            self.history.pop()

    def _shorten(self) -> None:
        """Cut the answers of tools, one of which may be what the service refuses."""
        for place, answers in self._noted:
            messages = self.client.results([(call, _cut(answer)) for call, answer in answers])
            self.history[place : place + len(messages)] = messages

    async def _answer(self, deadline: float) -> ChatAnswer:
        usage = Usage()
        for number in range(1, self._most_turns + 1):
            turn = await self._retries.run(self._turn, deadline)
            usage, self.usage = usage + turn.usage, self.usage + turn.usage
            if turn.message is not None:
                self.history.append(turn.message)
            counted = turn.usage.input + turn.usage.output
            self._used_tokens = counted or sum(len(json.dumps(one)) for one in self.history) // TOKEN
            if not turn.calls:
                return ChatAnswer(turn.text, usage, number, turn.stop)
            if number == self._most_turns:
                self._note([(call, ToolAnswer(NOT_MADE, is_error=True)) for call in turn.calls])
            else:
                await self._call_all(turn.calls)
        raise TooManyTurns(self._most_turns)

    async def _turn(self) -> Turn:
        self._partial = ""
        turn = await self.client.turn(self.history, self._tools.definitions, self._say)
        self._partial = ""
        return turn

    def _say(self, text: str) -> None:
        self._partial += text
        self._watcher.said(text)

    async def _call_all(self, calls: Sequence[ToolCall]) -> None:
        """Make the calls at the same time and put every answer into the history, also when cancelled."""
        tasks = [asyncio.ensure_future(self._call(call)) for call in calls]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        finally:
            self._note([(call, _answer_of(task)) for call, task in zip(calls, tasks, strict=True)])

    async def _call(self, call: ToolCall) -> ToolAnswer:
        started = time.monotonic()
        self._watcher.calling(call)
        answer = (
            ToolAnswer(call.problem, is_error=True)
            if call.problem
            else await self._tools.execute(call.name, call.arguments)
        )
        self._watcher.called(call, answer, time.monotonic() - started)
        return answer

    def _note(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> None:
        self._noted.append((len(self.history), answers))
        self.history.extend(self.client.results(answers))


def _cut(answer: ToolAnswer) -> ToolAnswer:
    if len(answer.text) <= SHORT:
        return answer
    return ToolAnswer(f"{answer.text[:SHORT]}\n[cut: the service refused the whole text]", answer.is_error)


def _answer_of(task: asyncio.Future[ToolAnswer]) -> ToolAnswer:
    if task.done() and not task.cancelled() and task.exception() is None:
        return task.result()
    return ToolAnswer(CANCELLED, is_error=True)
