"""ChatCommands: what a line that begins with / does in a conversation."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from onetool_chat.cli.chat_screen import usage_text
from onetool_chat.conversation import Conversation
from ot.errors import ChatError, OneToolError
from ot.files.no_links import make_private
from ot.files.private_file import read_regular, write_private

if TYPE_CHECKING:
    from onetool_chat.cli.chat_room import ChatRoom

COMMANDS: Mapping[str, str] = {
    "/help": "show these commands",
    "/clear": "forget the conversation and begin anew",
    "/model [NAME]": "show the model, or go on with another of the same provider",
    "/tools": "list the tools that the model has",
    "/usage": "show the tokens used so far",
    "/save [NAME]": "keep the conversation",
    "/resume [NAME]": "go on with one that was kept, the newest if there is no name",
    "exit": "leave, as Ctrl-D does",
}
NAME = re.compile(r"[\w-][\w.-]{0,99}")
MAX_BYTES = 50_000_000


class ChatCommands:
    """Carries out the commands of the person at the terminal."""

    def __init__(self, room: ChatRoom) -> None:
        """Act on the conversation of *room*."""
        self._room = room
        self._say = room.screen.note

    async def run(self, line: str) -> None:
        """Carry out one command; what goes wrong is shown."""
        word, _, given = line.partition(" ")
        known = {name.split()[0] for name in COMMANDS}
        if word not in known:
            self._room.screen.fail(f"there is no {word}; /help lists the commands")
            return
        try:
            await getattr(self, f"_{word.removeprefix('/')}")(given.strip())
        except (OneToolError, OSError) as error:
            self._room.screen.fail(str(error))

    async def _help(self, given: str) -> None:
        for name, text in COMMANDS.items():
            self._say(f"{name:<16}{text}")

    async def _clear(self, given: str) -> None:
        self._room.conversation.begin()
        self._say("the conversation begins anew")

    async def _model(self, given: str) -> None:
        if given:
            await self._room.use_model(given)
        self._say(f"the model is {self._room.conversation.client.model}")

    async def _tools(self, given: str) -> None:
        for tool in self._room.offered.definitions:
            self._say(f"{tool.name}: {tool.description.strip().partition(chr(10))[0][:120]}")

    async def _usage(self, given: str) -> None:
        self._say(usage_text(self._room.conversation.usage))

    async def _save(self, given: str) -> None:
        file = self._file(given or time.strftime("%Y-%m-%d-%H%M%S"))
        make_private(file.parent)
        write_private(file, self._room.redact(dump_conversation(self._room.conversation, self._room.provider)))
        self._say(f"kept: /resume {file.stem} goes on with it")

    async def _resume(self, given: str) -> None:
        kept = sorted(self._room.saved_chats.glob("*.json"), key=lambda file: file.stat().st_mtime)
        file = self._file(given) if given else kept[-1] if kept else None
        if file is None or not file.exists():
            names = ", ".join(one.stem for one in kept[-10:]) or "none yet"
            raise ChatError(f"there is no such conversation; kept are: {names}")
        text = read_regular(file, MAX_BYTES, follow=False).data.decode(errors="replace")
        self._room.conversation.begin(history_in(text, self._room.provider))
        self._say(f"{file.stem} goes on: {len(self._room.conversation.history)} messages")

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ChatError("a name has letters, digits, - and _")
        return self._room.saved_chats / f"{name}.json"


def dump_conversation(conversation: Conversation, provider: str) -> str:
    """Return *conversation* as it is kept."""
    return json.dumps({"provider": provider, "model": conversation.client.model, "history": conversation.history})


def history_in(text: str, provider: str) -> list[Mapping[str, Any]]:
    """Return the history that was kept.

    Raises:
        ChatError: It is malformed, or in the form of another provider.
    """
    try:
        kept = json.loads(text)
        history, other = kept["history"], str(kept["provider"])
    except (ValueError, TypeError, KeyError):
        raise ChatError("the file is not a kept conversation") from None
    if other != provider:
        raise ChatError(f"this conversation used {other}: continue it with onetool chat --provider {other}")
    messages = cast("list[Any]", history) if isinstance(history, list) else list[Any]([None])
    if not all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in messages):
        raise ChatError("the file is not a kept conversation")
    return messages
