"""Transcriber: the seam between sound and words."""

from __future__ import annotations

from typing import Protocol


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcribe(self, utterance: bytes) -> str:
        """Return what is said in these samples (see ``ot.chat.audio.RATE``), or nothing."""
        ...
