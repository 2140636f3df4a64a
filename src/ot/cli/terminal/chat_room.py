"""ChatRoom: the app, the client and the screen of one ``onetool chat`` or ``onetool listen``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ot.chat.chat_client import ToolCall
from ot.chat.chat_tools import ToolAnswer
from ot.chat.conversation import ChatAnswer, ChatWatcher, Conversation
from ot.chat.open_chat import open_client, open_tools
from ot.cli.terminal import Screen
from ot.cli.terminal.event_loop import new_runner
from ot.cli.terminal.own_workspace import start_log
from ot.cli.terminal.prompts import TerminalQuestion
from ot.config.models import Chat
from ot.config.paths import Paths
from ot.logs import end_logs
from ot.registry.clean_text import clean_line, clean_text
from ot.workspace import Workspace

type Redact = Callable[[str], str]

MAX_ARGUMENTS = 100


@contextmanager
def open_room(
    provider: str | None, model: str, packs: str, *, shown: bool = False, trust_project: bool
) -> Generator[tuple[asyncio.Runner, ChatRoom]]:
    """Yield a room, once servers among *packs* have said what they offer, and the runner that it lives in.

    Raises:
        OneToolError: It cannot be opened.
    """
    chosen = tuple(filter(None, packs.split(",")))

    async def opened() -> ChatRoom:
        app = Workspace.alone(Paths.find(), trust_project=trust_project)
        try:
            await app.definitions_of(chosen)  # a server among them is asked now what it offers
            start_log(app, terminal_level="WARNING")
            return ChatRoom(app, _settings(app, provider, model), chosen, shown=shown)
        except BaseException:
            await app.aclose()
            raise

    with new_runner() as runner:
        room = runner.run(opened())
        try:
            yield runner, room
        finally:
            runner.run(room.aclose())


def _settings(app: Workspace, provider: str | None, model: str) -> Chat:
    """Return the settings of chat, with what the options say instead."""
    chat = app.picture.loaded.config.chat
    if provider and provider != chat.provider:
        # The model of another provider would not be known there.
        return chat.model_copy(update={"provider": provider, "model": model})
    return chat.model_copy(update={"model": model or chat.model})


class ChatRoom:
    """Everything that a conversation at the command line needs, closed together."""

    def __init__(self, app: Workspace, chat: Chat, packs: Sequence[str], *, shown: bool) -> None:
        """Open the conversation that *chat* says; *shown* is for somebody at a terminal.

        Raises:
            OneToolError: It cannot be opened.
        """
        self._app = app
        self.redact = app.picture.loaded.secrets.redact
        self.client = open_client(chat, app.picture.loaded.secrets)
        ask = TerminalQuestion(app.ask_seconds) if shown else None
        offered = open_tools(app, app.picture.registry, packs, "" if packs else _run_description(app), ask)
        self.tools = len(offered.definitions) if packs else 0
        self.screen = ChatScreen(self.redact)
        self._calls = CallLog(self.redact)
        watcher = self.screen if shown else self._calls
        self.conversation = Conversation(self.client, offered, turns=chat.turns, seconds=chat.seconds, watcher=watcher)

    def facts(self) -> dict[str, Any]:
        """Return what is to be known of the conversation so far."""
        usage = self.conversation.usage
        tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
        return {"model": self.client.model, "calls": self._calls.calls, "usage": tokens}

    async def aclose(self) -> None:
        """Close everything."""
        await self.client.aclose()
        await self._app.aclose()
        end_logs()


def _run_description(app: Workspace) -> str:
    from ot.server.run_description import DESCRIPTION, pack_names

    return DESCRIPTION.format(packs=pack_names(app.picture.registry.packs))


class ChatScreen(ChatWatcher):
    """Shows words as they come and calls as they run; what models and tools say cannot steer the terminal."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of everything with *redact*."""
        self._redact = redact
        self._screen = Screen()
        self._in_line = False

    def greet(self, model: str, tools: int) -> None:
        """Say who is there."""
        offered = f"{tools} tools" if tools else "the tool run"
        self._print(f"{model} with {offered}. Ctrl-C stops an answer, twice exits.", "dim")

    def said(self, text: str) -> None:
        """Show a piece of the answer."""
        self._screen.print(text, end="")
        self._in_line = bool(text) and not text.endswith("\n")

    def calling(self, call: ToolCall) -> None:
        """Show that a tool is called, long arguments cut."""
        given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
        self._print(f"  → {clean_line(f'{call.name} {self._redact(given)}', MAX_ARGUMENTS)}", "cyan")

    def called(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Show how long a call took, and what went wrong."""
        if answer.is_error:
            self._print(f"  ✗ {clean_line(call.name, 80)} {seconds:.1f} s: {clean_line(answer.text, 200)}", "red")
        else:
            self._print(f"  ✓ {clean_line(call.name, 80)} {seconds:.1f} s, {len(answer.text):,} characters", "green")

    def end(self, answer: ChatAnswer) -> None:
        """Show what the answer cost."""
        cut = ", cut off at chat.max_tokens" if answer.stop in ("max_tokens", "length") else ""
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


class CallLog(ChatWatcher):
    """Keeps the calls of a conversation that nobody watches."""

    def __init__(self, redact: Redact) -> None:
        """Take secrets out of arguments with *redact*."""
        self._redact = redact
        self.calls: list[dict[str, Any]] = []

    def called(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        """Keep the call."""
        arguments = json.loads(self._redact(json.dumps(call.arguments)))
        self.calls.append(
            {"tool": call.name, "arguments": arguments, "seconds": round(seconds, 3), "is_error": answer.is_error}
        )
