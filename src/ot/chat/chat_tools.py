"""ChatTools: the tools that a chat model is given, each call of which goes through the one door."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ot.config.principal import os_user
from ot.errors import NotOffered
from ot.execution.caller import Answer, AskUser, Caller, Question
from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinition, ToolDefinitions, run_definition
from ot.runtime.reply import Reply

logger = logging.getLogger(__name__)

RUN = "run"
CLIENT = "chat"
"""How statistics and logs name a chat."""


class ChatApp(Protocol):
    """What chat needs of the app behind it."""

    async def run(self, command: str, caller: Caller) -> Reply:
        """Answer a program."""
        ...

    async def call(self, pack: str, name: str, arguments: Mapping[str, Any], caller: Caller) -> Reply:
        """Answer one call of a tool."""
        ...


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool said, as text; a failure says what went wrong and what to do."""

    text: str
    is_error: bool = False


class ToolOffer(Protocol):
    """The tools that a conversation offers to its model."""

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        """Their definitions, as the model sees them."""
        ...

    async def execute(self, name: str, arguments: object) -> ToolAnswer:
        """Return what the tool called *name* answers; a failure is an answer, too."""
        ...


class ChatTools:
    """Some tools by the names that a model knows; one that was not offered cannot be called."""

    def __init__(
        self, app: ChatApp, tools: ToolDefinitions | None = None, *, run: str = "", ask: AskUser | None = None
    ) -> None:
        """Offer *tools*, and the tool ``run`` with the description *run* unless that is empty.

        Questions of tools go to *ask*, one after the other: calls are made at the same time, and a user reads one.
        """
        self._app = app
        self._caller = Caller(os_user(), client=CLIENT, ask=_in_turn(ask) if ask else None)
        self._tools: Mapping[str, Tool] = tools.by_name if tools else {}
        self._with_run = bool(run)
        own = [run_definition(run)] if run else []
        self.definitions: Sequence[ToolDefinition] = (*own, *(tools.all if tools else ()))

    async def execute(self, name: str, arguments: object) -> ToolAnswer:
        """Return what the tool called *name* answers to one object of arguments; a failure is an answer, too."""
        try:
            reply = await self._reply(name, arguments)
        except NotOffered as error:
            logger.warning("a model asked for an unknown tool: %s", name[:100])
            return ToolAnswer(f"unknown tool: {error}", is_error=True)
        return ToolAnswer("\n".join((*reply.texts, *_left_out(reply))), reply.is_error)

    async def _reply(self, name: str, arguments: object) -> Reply:
        is_run = self._with_run and name == RUN
        tool = self._tools.get(name)
        if tool is None and not is_run:
            raise NotOffered(name, [definition.name for definition in self.definitions])
        if not isinstance(arguments, Mapping):
            return Reply((f"InvalidArguments: the arguments of {name} must be one JSON object",), is_error=True)
        given = cast("Mapping[str, Any]", arguments)
        if tool is not None and not is_run:
            return await self._app.call(tool.pack, tool.name, given, self._caller)
        command = given.get("command")
        if not isinstance(command, str) or len(given) != 1:
            return Reply(("InvalidArguments: run needs one argument, command: the program's text",), is_error=True)
        return await self._app.run(command, self._caller)


def _left_out(reply: Reply) -> list[str]:
    """Say what is no text and cannot be handed on: a model must not take the rest for the whole."""
    kinds = ", ".join(sorted({str(block.get("type", "unknown")) for block in reply.blocks}))
    return (
        [f"note: {len(reply.blocks)} of the answer's parts are not text ({kinds}) and are left out here"]
        if kinds
        else []
    )


def _in_turn(ask: AskUser) -> AskUser:
    turn = asyncio.Lock()

    async def ask_alone(question: Question) -> Answer:
        async with turn:
            return await ask(question)

    return ask_alone
