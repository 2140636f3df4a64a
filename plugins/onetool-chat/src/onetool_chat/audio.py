"""Audio as plain samples: where it comes from, and where one utterance ends."""

from __future__ import annotations

import asyncio
import math
import wave
from array import array
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.errors import ChatError, MissingExtra

RATE = 16_000
"""Samples a second: one channel, 16 bits, little-endian, as every recogniser here takes it."""
CHUNK_SECONDS = 0.03
CHUNK_BYTES = int(RATE * CHUNK_SECONDS) * 2
MAX_CHUNKS = 1000
"""What waits of the microphone while nobody listens; the oldest is dropped."""


def wav_chunks(file: Path) -> AsyncIterator[bytes]:
    """Return the samples of a WAV file in short chunks; ChatError for one of another kind, or none at all."""
    try:
        with wave.open(str(file), "rb") as opened:
            found = opened.getframerate(), opened.getnchannels(), opened.getsampwidth()
            samples = opened.readframes(opened.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise ChatError(f"{file} cannot be read as a WAV file: {error}") from None
    if found != (RATE, 1, 2):
        raise ChatError(f"{file} must have {RATE} samples a second, one channel and 16 bits; sox converts it")
    return _in_chunks(samples)


async def _in_chunks(samples: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(samples), CHUNK_BYTES):
        yield samples[start : start + CHUNK_BYTES]
        await asyncio.sleep(0)


async def microphone_chunks() -> AsyncIterator[bytes]:
    """Yield what the microphone hears, in short chunks; ChatError where there is none."""
    try:
        import sounddevice  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - an extra
    except (ImportError, OSError):  # the latter: the system's PortAudio is missing
        raise MissingExtra("a microphone", "voice") from None
    device: Any = sounddevice
    loop, heard = asyncio.get_running_loop(), asyncio.Queue[bytes](MAX_CHUNKS)

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


def loudness(chunk: bytes) -> float:
    """Return the root mean square of the samples: 0 is silence, 32,767 the loudest."""
    samples = array("h", chunk[: len(chunk) // 2 * 2])
    return math.sqrt(sum(sample * sample for sample in samples) / len(samples)) if samples else 0.0


@dataclass(frozen=True, slots=True)
class Utterances:
    """Cuts a stream of samples where the speaker pauses."""

    threshold: float = 300.0
    pause_seconds: float = 0.6
    shortest_seconds: float = 0.2
    longest_seconds: float = 30.0

    async def of(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield each utterance as samples, with a little of the silence around it."""
        before: deque[bytes] = deque(maxlen=10)
        spoken: list[bytes] = []
        quiet = loud = 0
        async for chunk in _even(chunks):
            is_loud = loudness(chunk) >= self.threshold
            if not spoken and not is_loud:
                before.append(chunk)
                continue
            spoken = spoken or list(before)
            spoken.append(chunk)
            loud, quiet = loud + is_loud, 0 if is_loud else quiet + 1
            if quiet * CHUNK_SECONDS >= self.pause_seconds or len(spoken) * CHUNK_SECONDS >= self.longest_seconds:
                if loud * CHUNK_SECONDS >= self.shortest_seconds:
                    yield b"".join(spoken)
                spoken, quiet, loud = [], 0, 0
                before.clear()
        if loud * CHUNK_SECONDS >= self.shortest_seconds:
            yield b"".join(spoken)


async def _even(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the same samples in chunks of one size; a pipe gives them as they come, half samples and all."""
    rest = b""
    async for chunk in chunks:
        rest += chunk
        while len(rest) >= CHUNK_BYTES:
            yield rest[:CHUNK_BYTES]
            rest = rest[CHUNK_BYTES:]
    if len(rest) >= 2:
        yield rest[: len(rest) // 2 * 2]
