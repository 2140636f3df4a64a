"""What a conversation looks like: on a terminal as it goes, or kept for the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ot.chat.chat_client import ToolCall
from ot.chat.chat_tools import ToolAnswer
from ot.chat.conversation import ChatAnswer
from ot.cli.terminal import Screen
from ot.registry.clean_text import clean_line, clean_text

type Redact = Callable[[str], str]

MOST_ARGUMENTS = 100


def call_text(call: ToolCall, redact: Redact) -> str:
    """Return a call on one line, long arguments cut."""
    written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return clean_line(f"{call.name} {redact(written)}", MOST_ARGUMENTS)


class ChatScreen:
    """Shows words as they come and calls as they run; what models and tools say cannot steer the terminal."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of everything with *redact*."""
        self._redact = redact
        self._screen = Screen()
        self._in_line = False

    def greet(self, model: str, tools: int) -> None:
        """Say who is there."""
        offered = f"{tools} tools" if tools else "the tool run"
        self._print(f"{model} with {offered}. Ctrl-C stops an answer, twice leaves.", "dim")

    def said(self, text: str) -> None:
        """Show a piece of the answer."""
        self._screen.print(text, end="")
        self._in_line = bool(text) and not text.endswith("\n")

    def calling(self, call: ToolCall) -> None:
        """Show that a tool is called."""
        self._print(f"  → {call_text(call, self._redact)}", "cyan")

    def called(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Show how long a call took, and what went wrong."""
        if answer.is_error:
            self._print(f"  ✗ {clean_line(call.name, 80)} {seconds:.1f} s: {clean_line(answer.text, 200)}", "red")
        else:
            self._print(f"  ✓ {clean_line(call.name, 80)} {seconds:.1f} s, {len(answer.text):,} characters", "green")

    def end(self, answer: ChatAnswer) -> None:
        """Show what the answer cost."""
        cut = ", cut at its longest (chat.max_tokens)" if answer.stop in ("max_tokens", "length") else ""
        self._print(f"{answer.usage.input:,} tokens read, {answer.usage.output:,} written{cut}", "dim")

    def fail(self, why: str) -> None:
        """Show why there is no answer."""
        self._print(f"onetool: {clean_text(why, 2000)}", "bold red")

    def note(self, text: str) -> None:
        """Show a remark."""
        self._print(f"({text})", "dim")

    def _print(self, text: str, style: str) -> None:
        if self._in_line:
            self._screen.print()
            self._in_line = False
        self._screen.print((text, style))


class CallLog:
    """Keeps the calls of a conversation that nobody watches."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of arguments with *redact*."""
        self._redact = redact
        self.calls: list[dict[str, Any]] = []

    def said(self, text: str) -> None:
        """Do nothing: the whole answer comes at the end."""

    def calling(self, call: ToolCall) -> None:
        """Do nothing: the call is kept when it has ended."""

    def called(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Keep the call."""
        arguments = json.loads(self._redact(json.dumps(call.arguments)))
        self.calls.append(
            {"tool": call.name, "arguments": arguments, "seconds": round(seconds, 3), "is_error": answer.is_error}
        )
