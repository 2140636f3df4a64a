"""Conversation: questions to a model, the tools that it asks for meanwhile, and a history that stays valid."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from onetool_chat.chat_client import ChatClient, Message, ToolCall, Turn, Usage
from onetool_chat.chat_tools import ToolAnswer, ToolOffer
from onetool_chat.errors import ChatRefused, TooManyTurns
from onetool_chat.retries import Retries
from ot.errors import ChatTimeout

CANCELLED = "the call was cancelled; whether it took effect is unknown"
NOT_MADE = "the call was not made: the question has used up its turns"
STOPPED = "[the user stopped the answer here]"
FULL = 0.8
"""The share of a context above which old parts of the history are forgotten."""
CHARACTERS_PER_TOKEN = 4
SHORT = 2000
"""Characters that are left of a tool's answer for which there is no room, or which the service has refused."""
CUT = "[cut here: the whole text is too long for this conversation]"


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What came of one question."""

    text: str
    usage: Usage
    turns: int
    stop: str = ""


class ChatWatcher:
    """Sees a question being answered, and looks away; what overrides this must be quick and must not raise."""

    def take_text(self, text: str) -> None:
        """Take a piece of the answer."""

    def calling(self, call: ToolCall) -> None:
        """Take note that a tool is called."""

    def note_call(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Take note of what a tool answered."""

    def forgot(self, questions: int, answers: int) -> None:
        """Take note that the oldest questions left the history, and that answers of tools were cut."""


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
        """Ask *client*, which may call *tools*; the history is kept below *context_tokens*, if they are known."""
        self.client = client
        """Who answers; another of the same provider may take its place between questions."""
        self._tools = tools
        self._most_turns = turns
        self._seconds = seconds
        self._context_tokens = context_tokens
        self._tokens = 0
        """What the history takes: as counted when the model last answered, and an estimate of what came since."""
        self._retries = retries or Retries()
        self._watcher = watcher or ChatWatcher()
        self._one_at_a_time = asyncio.Lock()
        self._partial = ""
        """What the model has said in the turn that is under way."""
        self._start = 0
        """Where in the history the question is."""
        self._noted: list[tuple[int, Sequence[tuple[ToolCall, ToolAnswer]]]] = []
        """Where in the history what tools said to it is, as long as it is whole."""
        self.history: list[Message] = []
        self.usage = Usage()

    async def ask(self, question: str) -> ChatAnswer:
        """Return the model's answer, or raise ChatError; whatever happens, the history stays one that can go on."""
        async with self._one_at_a_time:
            deadline = time.monotonic() + self._seconds
            self._start, self._noted, self._partial = len(self.history), [], ""
            self._add([{"role": "user", "content": question}])
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._answer(deadline)
            except BaseException as error:
                self._settle(error)
                if isinstance(error, TimeoutError):
                    raise ChatTimeout(self._seconds) from None
                raise

    def begin(self, history: Sequence[Message] = ()) -> None:
        """Go on from *history*, or begin anew; what was used up stays counted."""
        self.history.clear()
        self._tokens = 0
        self._add(history)

    def _add(self, messages: Sequence[Message]) -> None:
        self.history.extend(messages)
        self._tokens += _tokens_in(messages)

    def _make_room(self) -> None:
        """Forget the oldest questions, then what tools said to this one, before the history outgrows its context."""
        most = FULL * self._context_tokens
        if not most or self._tokens <= most:
            return
        questions, answers = self._forget_oldest(), 0
        while self._noted and self._tokens > most:
            answers += self._shorten(*self._noted.pop(0))
        if questions or answers:
            self._watcher.forgot(questions, answers)

    def _forget_oldest(self) -> int:
        """Drop earlier questions with all that came of them, about half of the history; return how many."""
        sizes = [_tokens_in([message]) for message in self.history]
        # Only there can a history begin: a call and its answer stay together.
        starts = [n for n, one in enumerate(self.history) if one["role"] == "user" and isinstance(one["content"], str)]
        cut = next((n for n in starts if n < self._start and 2 * sum(sizes[n:]) <= sum(sizes)), self._start)
        del self.history[:cut]
        self._tokens -= sum(sizes[:cut])
        self._start -= cut
        self._noted = [(place - cut, answers) for place, answers in self._noted]
        return sum(n < cut for n in starts)

    def _shorten(self, place: int, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> int:
        """Cut what tools said in one turn; return how many answers were long."""
        messages = self.client.results([(call, _cut(answer)) for call, answer in answers])
        end = place + len(messages)
        self._tokens += _tokens_in(messages) - _tokens_in(self.history[place:end])
        self.history[place:end] = messages
        return sum(len(answer.text) > SHORT for _, answer in answers)

    def _settle(self, error: BaseException) -> None:
        """Leave a history that the provider takes: of a question that ended with *error* what tools did for it."""
        # What the service refuses may be what a tool said.
        if isinstance(error, ChatRefused) and (cut := sum(self._shorten(*noted) for noted in self._noted)):
            self._watcher.forgot(0, cut)
        if isinstance(error, TimeoutError | asyncio.CancelledError) and (said := self._partial.strip()):
            self._add([{"role": "assistant", "content": f"{said} {STOPPED}"}])
        if len(self.history) == self._start + 1:  # nothing has come of it
            self._tokens -= _tokens_in([self.history.pop()])

    async def _answer(self, deadline: float) -> ChatAnswer:
        usage = Usage()
        for number in range(1, self._most_turns + 1):
            self._make_room()
            turn = await self._retries.run(self._turn, deadline)
            usage, self.usage = usage + turn.usage, self.usage + turn.usage
            self._add([turn.message] if turn.message is not None else [])
            # Some services count what they had to read anew, or nothing.
            self._tokens = max(turn.usage.input + turn.usage.output, _tokens_in(self.history))
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
        self._watcher.take_text(text)

    async def _call_all(self, calls: Sequence[ToolCall]) -> None:
        """Make the calls at the same time and put every answer into the history, also when cancelled."""
        tasks: list[asyncio.Task[ToolAnswer]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self._call(call)) for call in calls]
        finally:
            self._note([(call, _answer_of(task)) for call, task in zip(calls, tasks, strict=True)])

    async def _call(self, call: ToolCall) -> ToolAnswer:
        started = time.monotonic()
        self._watcher.calling(call)
        problem = ToolAnswer(call.problem, is_error=True) if call.problem else None
        answer = problem or await self._tools.execute(call.name, call.arguments)
        self._watcher.note_call(call, answer, time.monotonic() - started)
        return answer

    def _note(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> None:
        self._noted.append((len(self.history), answers))
        self._add(self.client.results(answers))


def _tokens_in(messages: Sequence[Message]) -> int:
    return len(json.dumps(list(messages))) // CHARACTERS_PER_TOKEN


def _cut(answer: ToolAnswer) -> ToolAnswer:
    return answer if len(answer.text) <= SHORT else ToolAnswer(f"{answer.text[:SHORT]}\n{CUT}", answer.is_error)


def _answer_of(task: asyncio.Task[ToolAnswer]) -> ToolAnswer:
    return ToolAnswer(CANCELLED, is_error=True) if task.cancelled() or task.exception() else task.result()
