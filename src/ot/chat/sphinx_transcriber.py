"""SphinxTranscriber: speech offline, within a small grammar."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread

from ot.chat.audio import RATE
from ot.errors import ChatError, MissingExtra

BEAMS = {"beam": 1e-80, "wbeam": 1e-60, "pbeam": 1e-80}
"""Wider than usual: a grammar is small, and slow speech survives."""


class SphinxTranscriber:
    """Recognises the sentences of a JSGF grammar; its English model comes with the library."""

    def __init__(self, grammar: str) -> None:
        """Recognise what *grammar* allows, such as ``public <order> = list my tools | turn on the light;``.

        Raises:
            MissingExtra: The library is not installed.
            ChatError: The grammar cannot be used.
        """
        try:
            import pocketsphinx  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("speech without a network", "voice-offline") from None
        head = "" if grammar.lstrip().startswith("#JSGF") else "#JSGF V1.0;\ngrammar orders;\n"
        library: Any = pocketsphinx  # without types
        self._decoder: Any = library.Decoder(samprate=RATE, lm=None, loglevel="FATAL", **BEAMS)
        self._one_at_a_time = anyio.Lock()
        try:
            self._decoder.add_jsgf_string("orders", head + grammar)
            self._decoder.activate_search("orders")
        except (RuntimeError, ValueError, KeyError) as error:
            raise ChatError(f"the grammar cannot be used: {error}") from None

    async def transcribe(self, utterance: bytes) -> str:
        """Return the sentence that was most likely said, or nothing."""
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(self._transcribe, utterance)

    def _transcribe(self, utterance: bytes) -> str:
        if not utterance:
            return ""
        self._decoder.start_utt()
        self._decoder.process_raw(utterance, full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        # The best guess may be the beginning of a sentence alone, and half an order is none.
        return found.hypstr if found and self._decoder.get_fsg("orders").accept(found.hypstr) else ""
