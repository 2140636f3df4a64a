"""WhisperTranscriber: speech of any words, by a Whisper model on this machine."""

from __future__ import annotations

from array import array
from typing import Any

import anyio
import anyio.to_thread

from ot.errors import MissingExtra


class WhisperTranscriber:
    """Recognises free speech; the model is fetched when it is first used."""

    def __init__(self, model: str = "base.en", **options: Any) -> None:
        """Use the Whisper model of that name or directory.

        Raises:
            MissingExtra: The library is not installed.
        """
        try:
            from faster_whisper import (  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - an extra
                WhisperModel,  # pyright: ignore[reportUnknownVariableType] - as above
            )
        except ImportError:
            raise MissingExtra("free speech", "voice") from None
        self._model: Any = WhisperModel(model, **options)
        self._one_at_a_time = anyio.Lock()

    async def transcribe(self, utterance: bytes) -> str:
        """Return what was said."""
        async with self._one_at_a_time:
            return await anyio.to_thread.run_sync(self._transcribe, utterance)

    def _transcribe(self, utterance: bytes) -> str:
        import numpy  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - comes with the library

        arrays: Any = numpy
        loud = arrays.array(array("h", utterance), dtype="float32") / 32768.0
        segments, _ = self._model.transcribe(loud)
        return " ".join(segment.text.strip() for segment in segments).strip()
