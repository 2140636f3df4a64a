"""BackgroundTranscriber: what is said becomes questions to a model, which answers with the same tools."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass

from ot.chat.audio import Utterances
from ot.chat.conversation import Conversation
from ot.chat.transcriber import Transcriber
from ot.errors import ChatError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Heard:
    """One utterance: what was understood, and what was answered or went wrong."""

    question: str
    answer: str = ""
    error: str = ""


class BackgroundTranscriber:
    """Listens, understands and asks; a question that fails does not end the listening."""

    def __init__(
        self,
        transcriber: Transcriber,
        conversation: Conversation,
        *,
        utterances: Utterances | None = None,
        told: Callable[[Heard], None] | None = None,
    ) -> None:
        """Ask *conversation* what *transcriber* understands; *told* is given each question with its answer."""
        self._transcriber = transcriber
        self._conversation = conversation
        self._utterances = utterances or Utterances()
        self._told = told

    async def listen(self, chunks: AsyncIterable[bytes]) -> list[Heard]:
        """Answer everything that is said in *chunks* until they end."""
        heard: list[Heard] = []
        async for utterance in self._utterances.of(chunks):
            if question := (await self._transcriber.transcribe(utterance)).strip():
                heard.append(await self._ask(question))
        return heard

    async def _ask(self, question: str) -> Heard:
        logger.info("heard: %s", question[:200])
        try:
            found = Heard(question, (await self._conversation.ask(question)).text)
            logger.info("answered: %s", found.answer[:200])
        except ChatError as error:
            found = Heard(question, error=str(error))
            logger.warning("no answer to '%s': %s", question[:200], error)
        if self._told:
            self._told(found)
        return found
