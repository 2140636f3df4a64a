"""ToolModel: the model that tools may ask, with the settings and the key of ``onetool chat``."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread

from onetool_chat.chat_client import ChatClient, Message, ToolCall, Turn
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.errors import BadReply
from onetool_chat.model_budget import ModelBudget, PartOfBudget
from onetool_chat.open_chat import key_for, open_client
from onetool_chat.retries import Retries
from onetool_chat.settings import Chat
from ot.config.models import Config
from ot.config.secrets import Secrets
from ot.errors import ChatError, ChatTimeout, redact_error
from ot.execution.call_context import OpenModel
from ot.execution.schema_check import Validator, validators_of
from ot.execution.tool_context import wait_in_thread
from ot.log_span import LogSpan
from ot.registry.tool_definitions import ToolDefinition

logger = logging.getLogger(__name__)

ANSWER = "answer"
ATTEMPTS = 2
"""How often a model may try to answer as a schema wants it."""


def model_of_a_run(config: Config, secrets: Secrets, places: asyncio.Semaphore) -> OpenModel:
    """Return the opener of the model for the tools of one run, which share its budget: the store ``language_model``."""
    chat = config.section(Chat)
    budget = ModelBudget(chat)
    return lambda: ToolModel(chat, secrets, budget, places)


class ToolModel:
    """Asks a model for a tool; each question stands alone."""

    def __init__(self, chat: Chat, secrets: Secrets, budget: ModelBudget, places: asyncio.Semaphore) -> None:
        """Ask the model that *chat* names, on *budget*; each question takes one of *places* while it is answered.

        Raises:
            ChatError: There is no key for it.
        """
        key_for(chat, secrets)
        self._chat = chat.model_copy(update={"system": ""})
        self._secrets = secrets
        self._budget = budget
        self._places = places

    def within(self, *, questions: int | None = None, tokens: int | None = None) -> ToolModel:
        """Return the same model for a part of what the run may ask."""
        return ToolModel(self._chat, self._secrets, PartOfBudget(self._budget, questions, tokens), self._places)

    def ask(self, text: str) -> str:
        """Return the model's answer, for a tool that is a plain function; it blocks its thread."""
        return wait_in_thread(self.aask, text)

    def extract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return what ``aextract`` returns, for a tool that is a plain function; it blocks its thread."""
        return wait_in_thread(self.aextract, text, schema)

    async def aask(self, text: str) -> str:
        """Return the model's answer to *text*.

        Raises:
            ChatError: There is none; the class says why.
        """
        async with self._asking("llm.ask") as (client, span):
            return (await self._turn(client, [self._question(text)], (), span)).text

    async def aextract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the model for an object that fits *schema*, the JSON schema of one.

        Raises:
            ChatError: The model gave none that fits.
            ValueError: It is not the JSON schema of an object.
        """
        validator = await anyio.to_thread.run_sync(_validator, schema, abandon_on_cancel=True)
        shown = json.loads(self._secrets.redact(json.dumps(dict(schema))))
        tool = ToolDefinition(ANSWER, "Give the answer. Call it once, with all of it.", shown)
        said = f"{text}\n\nAnswer by calling the tool `{ANSWER}`, and in no other way."
        history: list[Message] = [self._question(said)]
        async with self._asking("llm.extract") as (client, span):
            wrong = ""
            for _ in range(ATTEMPTS):
                turn = await self._turn(client, history, [tool], span)
                wrong = self._secrets.redact(_wrong(turn, validator))
                if not wrong:
                    return turn.calls[0].arguments
                history += _objection(client, turn, wrong)
            raise BadReply(client.model, f"it does not match the schema: {wrong}")

    def _question(self, text: str) -> Message:
        # Another's service must not learn a secret that stood in a file or a page.
        return {"role": "user", "content": self._secrets.redact(text)}

    @asynccontextmanager
    async def _asking(self, name: str) -> AsyncGenerator[tuple[ChatClient, LogSpan]]:
        self._budget.require_question()  # before a library is imported, and a place taken, for nothing
        try:
            async with asyncio.timeout(self._chat.seconds), self._places:
                # The first time the provider's library is imported, which takes longer than an event loop may wait.
                client = await anyio.to_thread.run_sync(open_client, self._chat, self._secrets)
                try:
                    with LogSpan(logger, name, model=client.model) as span:
                        yield client, span
                finally:
                    await client.aclose()
        except TimeoutError:
            raise ChatTimeout(self._chat.seconds) from None
        except ChatError as error:
            # A service may repeat the key in what it says, and a pack's worker must not learn it.
            redact_error(error, self._secrets.redact)
            raise

    async def _turn(
        self, client: ChatClient, history: Sequence[Message], tools: Sequence[ToolDefinition], span: LogSpan
    ) -> Turn:
        self._budget.spend_question()
        deadline = time.monotonic() + self._chat.seconds
        turn = await Retries().run(lambda: client.turn(history, tools, lambda _: None), deadline)
        self._budget.spend_tokens(turn.usage.input + turn.usage.output)
        span.add(inputTokens=turn.usage.input, outputTokens=turn.usage.output)
        return turn


def _validator(schema: Mapping[str, Any]) -> Validator:
    if schema.get("type") != "object":
        raise ValueError('the schema must be that of an object: {"type": "object", "properties": {…}}')
    try:
        built = validators_of(schema)
    except RecursionError:
        built = "it is nested too deeply"
    if isinstance(built, str):
        raise ValueError(f"the schema cannot be used: {built}")
    return built.whole


def _wrong(turn: Turn, validator: Validator) -> str:
    """Return why *turn* is not one call with arguments that fit, or nothing."""
    if len(turn.calls) != 1 or turn.calls[0].name != ANSWER:
        return f"call the tool `{ANSWER}` once"
    call = turn.calls[0]
    return call.problem or next((str(error.message) for error in validator.iter_errors(call.arguments)), "")


def _objection(client: ChatClient, turn: Turn, wrong: str) -> list[Message]:
    """Return the next messages: the reply, and what is wrong with it."""
    said: list[Message] = [turn.message] if turn.message else []
    if not turn.calls:
        return [*said, {"role": "user", "content": wrong}]
    answers: list[tuple[ToolCall, ToolAnswer]] = [(call, ToolAnswer(wrong, is_error=True)) for call in turn.calls]
    return [*said, *client.results(answers)]
