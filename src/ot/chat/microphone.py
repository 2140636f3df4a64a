"""The microphone as a stream of samples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ot.chat.audio import CHUNK_BYTES, RATE
from ot.errors import ChatError, MissingExtra

MOST_CHUNKS = 1000
"""What waits while nobody listens; the oldest is dropped."""


async def microphone_chunks() -> AsyncIterator[bytes]:
    """Yield what the microphone hears, in short chunks.

    Raises:
        MissingExtra: The library is not installed.
        ChatError: There is no microphone.
    """
    try:
        import sounddevice  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - an extra
    except (ImportError, OSError):  # the latter: the system's PortAudio is missing
        raise MissingExtra("a microphone", "voice") from None
    device: Any = sounddevice
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[bytes](MOST_CHUNKS)

    def put(chunk: bytes) -> None:
        if heard.full():
            heard.get_nowait()
        heard.put_nowait(chunk)

    def take(samples: Any, frames: int, clock: Any, status: Any) -> None:
        loop.call_soon_threadsafe(put, bytes(samples))

    try:
        stream = device.RawInputStream(RATE, CHUNK_BYTES // 2, channels=1, dtype="int16", callback=take)
    except device.PortAudioError as error:
        raise ChatError(f"the microphone cannot be used: {error}") from None
    with stream:
        while True:
            yield await heard.get()
