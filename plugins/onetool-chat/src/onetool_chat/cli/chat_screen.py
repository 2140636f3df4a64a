"""ChatScreen: a conversation as the person at the terminal sees it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from onetool_chat.chat_client import ToolCall, Usage
from onetool_chat.chat_tools import RUN, ToolAnswer
from onetool_chat.cli.chat_words import ChatWords
from onetool_chat.conversation import ChatAnswer, ChatWatcher
from ot.cli.terminal import Screen, pluralize
from ot.execution.caller import Answer, AskUser, Question

if TYPE_CHECKING:
    from rich.status import Status

type Redact = Callable[[str], str]

MAX_ARGUMENTS, MAX_ERROR = 100, 200
THINKING = "thinking"
_call: ContextVar[str] = ContextVar("ot_chat_call", default="")
"""The call that the current task works for: the time that its questions wait is not its own."""


class ChatScreen(ChatWatcher):
    """Shows words as they come and calls as they run; what models and tools say cannot steer the terminal."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of everything with *redact*."""
        self._redact = redact
        self._screen = Screen()
        self._words = ChatWords(get_terminal_size().columns)
        self._in_line = False
        self._begun = 0.0
        self._running: dict[str, str] = {}
        """What the calls under way are called here: those of one tool are numbered."""
        self._asked: Counter[str] = Counter()
        """For how many milliseconds questions of calls under way have waited, by call."""
        self._spinner: Status | None = None
        self._held: list[Callable[[], None]] | None = None
        """What is shown when the question that somebody reads now is answered."""

    def begin(self) -> None:
        """Show that the model thinks."""
        self._begun = time.monotonic()
        self._running.clear()
        self._spin()

    def take_text(self, text: str) -> None:
        """Show a piece of the answer."""

        def show() -> None:
            self._stop()
            self._screen.print(self._words.take(text), end="")
            self._in_line = bool(text) and not text.endswith("\n")

        self._show(show)

    def calling(self, call: ToolCall) -> None:
        """Show that a tool is called: a program as a whole."""
        _call.set(call.id)

        def show() -> None:
            self._stop()
            others = sum(label.partition(" ")[0] == call.name for label in self._running.values())
            self._running[call.id] = f"{call.name} ({others + 1})" if others else call.name
            match call.arguments:
                case {"command": str(program)} if call.name == RUN:
                    self._print(f"→ {self._running[call.id]}", "cyan")
                    self._screen.program(self._redact(program))
                case _:
                    pass
            self._spin()

        self._show(show)

    def note_call(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Show what was called, how long it took without the person's time to think, and what went wrong."""
        seconds = max(seconds - self._asked.pop(call.id, 0) / 1000, 0.0)

        def show() -> None:
            self._stop()
            label = self._running.pop(call.id, call.name)
            given = "" if call.name == RUN else f" {json.dumps(call.arguments, ensure_ascii=False)}"
            name = _one_line(f"{label}{self._redact(given)}", MAX_ARGUMENTS)
            if answer.is_error:
                self._print(f"✗ {name} · {seconds:.1f} s: {_one_line(answer.text, MAX_ERROR)}", "red")
            else:
                self._print(f"✓ {name} · {seconds:.1f} s, {len(answer.text):,} characters", "green")
            self._spin()

        self._show(show)

    def forgot(self, questions: int, answers: int) -> None:
        """Show what the model no longer knows."""
        gone = [f"the oldest {pluralize(questions, 'question')}"] if questions else []
        gone += [f"all but the beginning of {pluralize(answers, 'tool answer')}"] if answers else []
        self.note(f"the conversation grew too long: the model has forgotten {' and '.join(gone)}")
        self._spin()

    def end(self, answer: ChatAnswer, total: Usage) -> None:
        """Show what the answer cost, and the conversation so far."""
        cut = " · cut off at chat.max_tokens" if answer.stop in ("max_tokens", "length") else ""
        seconds = f"{time.monotonic() - self._begun:.1f} s"
        self.note(f"{seconds} · {usage_text(answer.usage)} · in all {usage_text(total)}{cut}")

    def fail(self, why: str) -> None:
        """Show why there is no answer."""
        self._stop()
        self._print(f"onetool: {self._redact(why)[:2000]}", "bold red")

    def note(self, text: str) -> None:
        """Show a remark."""
        self._stop()
        self._print(text, "dim")

    def alone(self, ask: AskUser) -> AskUser:
        """Return *ask* with one question at a time, and nothing else shown while it waits."""
        turn = asyncio.Lock()

        async def ask_alone(question: Question) -> Answer:
            started = time.monotonic()
            async with turn:
                self._stop()
                self._end_line()
                self._held = []
                try:
                    return await ask(question)
                finally:
                    self._asked[_call.get()] += round((time.monotonic() - started) * 1000)
                    held, self._held = self._held, None
                    for show in held:
                        show()

        return ask_alone

    def _show(self, show: Callable[[], None]) -> None:
        if self._held is None:
            show()
        else:
            self._held.append(show)

    def _print(self, text: str, style: str) -> None:
        self._end_line()
        self._screen.print((text, style))

    def _end_line(self) -> None:
        if self._in_line:
            self._screen.print(self._words.rest())
            self._in_line = False
        self._words = ChatWords(get_terminal_size().columns)

    def _spin(self) -> None:
        if not self._in_line and (spinner := self._screen.spinner(", ".join(self._running.values()) or THINKING)):
            self._spinner = spinner
            spinner.start()

    def _stop(self) -> None:
        if self._spinner:
            self._spinner.stop()
            self._spinner = None


def usage_text(usage: Usage) -> str:
    """Return tokens for people; not every server reports them."""
    return f"{usage.input:,} tokens read, {usage.output:,} written" if usage != Usage() else "no tokens reported"


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text[: 2 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


class CallLog(ChatWatcher):
    """Keeps the calls of a conversation that nobody watches."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of arguments with *redact*."""
        self._redact = redact
        self.calls: list[dict[str, Any]] = []

    def note_call(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Keep the call."""
        arguments = json.loads(self._redact(json.dumps(call.arguments)))
        self.calls.append(
            {"tool": call.name, "arguments": arguments, "seconds": round(seconds, 3), "is_error": answer.is_error}
        )
