"""ChatTools: the tools that a chat model is given, each call of which goes through the one door."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from onetool_chat.errors import NotOffered
from ot.config.principal import os_user
from ot.execution.caller import AskUser, Caller
from ot.registry.tool import Tool
from ot.registry.tool_definitions import ToolDefinition, ToolDefinitions, run_definition
from ot.runtime.reply import Reply

logger = logging.getLogger(__name__)

RUN = "run"
PAGE_TOOL = "ot.result"
CLIENT = "chat"
"""How statistics and logs name a chat."""


class ChatApp(Protocol):
    """What chat needs of the app behind it: an answer to a program, and to one call of a tool."""

    async def run(self, command: str, caller: Caller) -> Reply: ...

    async def call(self, pack: str, name: str, arguments: Mapping[str, Any], caller: Caller) -> Reply: ...


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool said, as text; a failure says what went wrong and what to do."""

    text: str
    is_error: bool = False


class ToolOffer(Protocol):
    """The tools that a conversation offers to its model; a failure is an answer, too."""

    @property
    def definitions(self) -> Sequence[ToolDefinition]: ...

    async def execute(self, name: str, arguments: object) -> ToolAnswer: ...


class ChatTools:
    """Some tools by the names that a model knows; one that was not offered cannot be called."""

    def __init__(
        self, app: ChatApp, tools: ToolDefinitions | None = None, *, run: str = "", ask: AskUser | None = None
    ) -> None:
        """Offer *tools*, and the tool ``run`` with the description *run* unless that is empty; *ask* gets questions."""
        self._app = app
        self._caller = Caller(os_user(), client=CLIENT, ask=ask)
        self._tools: Mapping[str, Tool] = tools.by_name if tools else {}
        self._with_run = bool(run)
        pages = [name for name, tool in self._tools.items() if tool.full_name == PAGE_TOOL]
        self._page_tool = pages[0] if pages and not run else PAGE_TOOL
        own = [run_definition(run)] if run else []
        self.definitions: Sequence[ToolDefinition] = (*own, *(tools.all if tools else ()))

    async def execute(self, name: str, arguments: object) -> ToolAnswer:
        """Return what the tool named *name* answers to one object of arguments; a failure is an answer, too."""
        reply = await self._reply(name, arguments)
        texts = list(reply.texts)
        if kinds := ", ".join(sorted({str(block.get("type", "unknown")) for block in reply.blocks})):
            # A model must not take the rest for the whole.
            texts.append(
                f"note: {len(reply.blocks)} of the answer's parts are not text ({kinds}) and are left out here"
            )
        text = "\n".join(texts)
        for handle in reply.handles:
            # The tool under the name that this model can call.
            text = text.replace(f"{PAGE_TOOL}(handle='{handle}'", f"{self._page_tool}(handle='{handle}'")
        return ToolAnswer(text, reply.is_error)

    async def _reply(self, name: str, arguments: object) -> Reply:
        is_run = self._with_run and name == RUN
        tool = self._tools.get(name)
        if tool is None and not is_run:
            logger.warning("a model asked for an unknown tool: %s", name[:100])
            error = NotOffered(name, [definition.name for definition in self.definitions])
            return Reply((f"unknown tool: {error}",), is_error=True)
        if not isinstance(arguments, Mapping):
            return Reply((f"InvalidArguments: the arguments of {name} must be one JSON object",), is_error=True)
        given = cast("Mapping[str, Any]", arguments)
        if tool is not None and not is_run:
            return await self._app.call(tool.pack, tool.name, given, self._caller)
        command = given.get("command")
        if not isinstance(command, str) or len(given) != 1:
            return Reply(("InvalidArguments: run needs one argument, command: the program's text",), is_error=True)
        return await self._app.run(command, self._caller)
