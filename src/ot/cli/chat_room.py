"""ChatRoom: the app, the client and the screen of one ``onetool chat``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from ot.app import App
from ot.chat.open_chat import open_client, open_conversation, open_tools
from ot.cli.chat_screen import CallLog, ChatScreen
from ot.cli.own_log import start_log
from ot.cli.terminal_question import TerminalQuestion
from ot.config.paths import Paths
from ot.logs import end_logs


class ChatRoom:
    """Everything that a conversation at the command line needs, opened together and closed together."""

    def __init__(
        self,
        app: App,
        provider: Literal["anthropic", "ollama"] | None,
        model: str,
        packs: Sequence[str],
        *,
        shown: bool,
    ) -> None:
        """Open the conversation that the settings and the options say; *shown* is for somebody at a terminal.

        Raises:
            OneToolError: It cannot be opened.
        """
        self.app = app
        loaded = app.picture.loaded
        self.redact = loaded.secrets.redact
        start_log(app, terminal_level="WARNING")
        wanted = {"provider": provider, "model": model}
        chat = loaded.config.chat.model_copy(update={name: value for name, value in wanted.items() if value})
        # The model of another provider would not be known there.
        if provider and provider != loaded.config.chat.provider and not model:
            chat = chat.model_copy(update={"model": ""})
        self.client = open_client(chat, loaded.secrets)
        self.model = self.client.model
        ask = TerminalQuestion(app.ask_seconds) if shown else None
        offered = open_tools(app, app.picture.registry, packs, "" if packs else _run_description(), ask)
        self.tools = len(offered.definitions) if packs else 0
        self.screen = ChatScreen(self.redact)
        self.calls = CallLog(self.redact)
        self.conversation = open_conversation(self.client, offered, chat, self.screen if shown else self.calls)

    @classmethod
    async def open(
        cls,
        provider: Literal["anthropic", "ollama"] | None = None,
        model: str = "",
        packs: Sequence[str] = (),
        *,
        shown: bool = False,
        trusted: bool = False,
    ) -> Self:
        """Return the room, once servers among *packs* have said what they offer.

        Raises:
            OneToolError: It cannot be opened.
        """
        app = App(Paths.find(), trust_project=trusted)
        try:
            await app.definitions_of(packs)  # a server among them is asked now what it offers
            return cls(app, provider, model, packs, shown=shown)
        except BaseException:
            await app.aclose()
            raise

    def facts(self) -> dict[str, Any]:
        """Return what is to be known of the conversation so far."""
        usage = self.conversation.usage
        tokens = {"input_tokens": usage.input, "output_tokens": usage.output}
        return {"model": self.model, "calls": self.calls.calls, "usage": tokens}

    async def aclose(self) -> None:
        """Close everything."""
        await self.client.aclose()
        await self.app.aclose()
        end_logs()


def _run_description() -> str:
    from ot.server.mcp_server import DESCRIPTION

    return DESCRIPTION
