"""ChatRoom: the app, the client and the screen of one ``onetool chat`` or ``onetool listen``."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from onetool_chat.chat_tools import RUN
from onetool_chat.cli.chat_screen import CallLog, ChatScreen
from onetool_chat.conversation import Conversation
from onetool_chat.model_providers import MODEL_PROVIDERS, ProviderName
from onetool_chat.open_chat import choose_chat, open_client, open_tools
from onetool_chat.settings import Chat
from ot.cli.terminal.event_loop import collect_garbage, new_runner
from ot.cli.terminal.own_workspace import start_log
from ot.cli.terminal.prompts import TerminalQuestion
from ot.config.paths import Paths
from ot.logs import end_logs
from ot.workspace import Workspace


@contextmanager
def open_room(
    provider: ProviderName | None, model: str, packs: str, *, shown: bool = False, trust_project: bool
) -> Generator[tuple[asyncio.Runner, ChatRoom]]:
    """Yield a room, once servers among *packs* have said what they offer, and the runner that it lives in.

    Raises:
        OneToolError: It cannot be opened.
    """
    chosen = tuple(filter(None, packs.split(",")))

    async def build_room() -> ChatRoom:
        app = Workspace.alone(Paths.find(), trust_project=trust_project)
        try:
            await app.definitions_of(chosen)  # a server among them is asked now what it offers
            start_log(app, terminal_level="CRITICAL")  # into the file alone: a terminal is for the conversation
            return ChatRoom(
                app, choose_chat(app.picture.loaded.config.section(Chat), provider, model), chosen, shown=shown
            )
        except BaseException:
            await app.aclose()
            raise

    collect_garbage()
    with new_runner() as runner:
        room = runner.run(build_room())
        try:
            yield runner, room
        finally:
            runner.run(room.aclose())


class ChatRoom:
    """Everything that a conversation at the command line needs, closed together."""

    def __init__(self, app: Workspace, chat: Chat, packs: Sequence[str], *, shown: bool) -> None:
        """Open the conversation that *chat* says; *shown* is for somebody at a terminal.

        Raises:
            OneToolError: It cannot be opened.
        """
        self._app = app
        self._chat = chat.model_copy(update={"system": chat.system or _system(app, bool(packs))})
        self.provider = chat.provider
        self.redact = app.picture.loaded.secrets.redact
        self.saved_chats = app.picture.loaded.state_dir / "chats"
        client = open_client(self._chat, app.picture.loaded.secrets)
        self.screen = ChatScreen(self.redact)
        ask = self.screen.alone(TerminalQuestion(app.ask_seconds)) if shown else None
        self.offered = open_tools(app, app.picture.registry, packs, "" if packs else _run_description(app), ask)
        self._calls = CallLog(self.redact)
        watcher = self.screen if shown else self._calls
        self.conversation = Conversation(
            client,
            self.offered,
            turns=chat.turns,
            seconds=chat.seconds,
            context_tokens=chat.context_tokens or MODEL_PROVIDERS[chat.provider].context_tokens,
            watcher=watcher,
        )

    def greet(self) -> None:
        """Say who is there."""
        names = [tool.name for tool in self.offered.definitions]
        offered = "the tool run" if names == [RUN] else f"{len(names)} tools"
        model = self.conversation.client.model
        self.screen.note(f"{model} with {offered}. Ctrl-C stops an answer; /help lists commands.")

    async def use_model(self, name: str) -> None:
        """Go on with another model of the same provider."""
        before = self.conversation.client
        self._chat = self._chat.model_copy(update={"model": name})
        self.conversation.client = open_client(self._chat, self._app.picture.loaded.secrets)
        await before.aclose()

    def facts(self) -> dict[str, Any]:
        """Return facts about the conversation so far."""
        usage = self.conversation.usage
        tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
        return {"model": self.conversation.client.model, "calls": self._calls.calls, "usage": tokens}

    async def aclose(self) -> None:
        """Close everything."""
        await self.conversation.client.aclose()
        await self._app.aclose()
        end_logs()


def _system(app: Workspace, with_packs: bool) -> str:
    """Return the default system prompt: where the model is, and what its tools are."""
    told = f"Today is {date.today():%A, %d %B %Y}. The working directory is {app.paths.cwd}."
    tools = (
        "Use your tools where they help."
        if with_packs
        else f"The tool `{RUN}` executes a short Python program that calls the user's tools: do with one program what "
        "several calls would do, and return only what you need."
    )
    return f"You help a person at a terminal; answer briefly. {told} {tools}"


def _run_description(app: Workspace) -> str:
    from ot.server.run_description import run_description

    return run_description(app.picture.registry.packs)
