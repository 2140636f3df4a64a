"""Speech to words, and words to questions that a model answers with the same tools."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio.to_thread

from onetool_chat.audio import RATE, Utterances
from onetool_chat.conversation import Conversation
from ot.errors import ChatError, MissingExtra

logger = logging.getLogger(__name__)

BEAMS = {"beam": 1e-80, "wbeam": 1e-60, "pbeam": 1e-80}
"""Wider than usual: a grammar is small, and slow speech survives."""


class Transcriber(Protocol):
    """Turns the samples of one utterance after the other into text, or nothing; it is called on another thread."""

    def transcribe(self, utterance: bytes) -> str: ...


class SphinxTranscriber:
    """Recognises the sentences of a JSGF grammar; its English model comes with the library."""

    def __init__(self, grammar: str) -> None:
        """Recognise what *grammar* allows, such as ``public <order> = list my tools | turn on the light;``."""
        try:
            import pocketsphinx  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("speech without a network", "voice-offline") from None
        head = "" if grammar.lstrip().startswith("#JSGF") else "#JSGF V1.0;\ngrammar orders;\n"
        library: Any = pocketsphinx  # without types
        self._decoder: Any = library.Decoder(samprate=RATE, lm=None, loglevel="FATAL", **BEAMS)
        try:
            self._decoder.add_jsgf_string("orders", head + grammar)
            self._decoder.activate_search("orders")
        except (RuntimeError, ValueError, KeyError) as error:
            unknown = [word for word in _words(grammar) if self._decoder.lookup_word(word) is None]
            why = f"unknown words: {', '.join(unknown)} (only small letters are known)" if unknown else error
            raise ChatError(f"the grammar cannot be used: {why}") from None

    def transcribe(self, utterance: bytes) -> str:
        """Return the sentence that was most likely said, or nothing."""
        if not utterance:
            return ""
        self._decoder.start_utt()
        self._decoder.process_raw(utterance, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        # The best guess may be only the beginning of a sentence, and half an order must not count.
        return found.hypstr if found and self._decoder.get_fsg("orders").accept(found.hypstr) else ""


def _words(grammar: str) -> list[str]:
    """Return the words that *grammar* has outside of its rules' names, tags and weights."""
    plain = re.sub(r"(?:#JSGF|grammar )[^;]{0,99};|\bpublic\b|<[^>]{0,99}>|\{[^}]{0,99}\}|/[^/]{0,99}/", " ", grammar)
    return list(dict.fromkeys(re.findall(r"[^\s|()\[\]*+;=\"]+", plain)))


class WhisperTranscriber:
    """Recognises free speech; the model is fetched when it is first used."""

    def __init__(self, model: str = "base.en", **options: Any) -> None:
        """Use the Whisper model of that name or directory."""
        try:
            import faster_whisper  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("free speech", "voice") from None
        library: Any = faster_whisper
        self._model: Any = library.WhisperModel(model, **options)

    def transcribe(self, utterance: bytes) -> str:
        """Return the most likely words, or nothing."""
        import numpy  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - comes with the library

        arrays: Any = numpy
        segments, _ = self._model.transcribe(arrays.frombuffer(utterance, "int16").astype("float32") / 32768.0)
        return " ".join(segment.text.strip() for segment in segments).strip()


@dataclass(frozen=True, slots=True)
class Heard:
    """One utterance: what was understood, and what was answered or went wrong."""

    question: str
    answer: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class BackgroundTranscriber:
    """Asks *conversation* what *transcriber* understands; *on_heard* is given each question with its answer."""

    transcriber: Transcriber
    conversation: Conversation
    on_heard: Callable[[Heard], None] = lambda heard: None

    async def listen(self, chunks: AsyncIterable[bytes]) -> list[Heard]:
        """Answer everything that is said in *chunks* until they end; a question that fails does not end it."""
        heard: list[Heard] = []
        async for utterance in Utterances().of(chunks):
            if question := (await anyio.to_thread.run_sync(self.transcriber.transcribe, utterance)).strip():
                heard.append(await self._ask(question))
                self.on_heard(heard[-1])
        return heard

    async def _ask(self, question: str) -> Heard:
        logger.info("heard: %s", question[:200])
        try:
            found = Heard(question, (await self.conversation.ask(question)).text)
            logger.info("answered: %s", found.answer[:200])
        except ChatError as error:
            found = Heard(question, error=str(error))
            logger.warning("no answer to '%s': %s", question[:200], error)
        return found
