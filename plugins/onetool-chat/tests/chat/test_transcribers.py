"""Real speech, spoken by a synthesiser and understood by a recogniser, becomes real calls of tools."""

from __future__ import annotations

import asyncio
import logging
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chat.chat_desk import PROVIDERS, calls, talking, text
from chat.wire_server import Scripted
from onetool_chat.audio import CHUNK_BYTES, Utterances, wav_chunks
from onetool_chat.transcribers import BackgroundTranscriber, SphinxTranscriber
from ot.errors import ChatError

pytestmark = pytest.mark.anyio

GRAMMAR = "public <order> = list my tools | turn on the light | turn off the light | good night;"


@pytest.mark.scenario("004-17")
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_said_is_understood_and_done_by_the_tools_of_the_one_door(
    provider: str, speech: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = [
        calls(provider, ("run", {"command": "ot.tools(pattern='lamp')"})),
        text(provider, "You have a lamp."),
        calls(provider, ("lamp_switch", {"room": "hall"}), first=2),
        text(provider, "The light is on."),
    ]
    async with talking(tmp_path, provider, *script) as desk:
        ears = BackgroundTranscriber(SphinxTranscriber(GRAMMAR), desk.talk)
        with caplog.at_level(logging.INFO):
            heard = await asyncio.wait_for(ears.listen(wav_chunks(speech)), 60)
    assert [(one.question, one.answer) for one in heard] == [
        ("list my tools", "You have a lamp."),
        ("turn on the light", "The light is on."),
    ]
    assert desk.observed.tools == ["ot.tools", "lamp.switch"]
    assert "heard: turn on the light" in caplog.text and "answered: The light is on." in caplog.text


async def test_a_question_that_fails_does_not_end_the_listening(speech: Path, tmp_path: Path) -> None:
    refused = Scripted(['{"error": "no"}'], 400, kind="application/json")
    async with talking(tmp_path, "ollama", refused, text("ollama", "on")) as desk:
        heard = await BackgroundTranscriber(SphinxTranscriber(GRAMMAR), desk.talk).listen(wav_chunks(speech))
    assert [(one.answer, one.error[:27]) for one in heard] == [("", "Ollama refused the request "), ("on", "")]


async def test_half_a_spoken_order_is_not_recognised(speech: Path) -> None:
    ears = SphinxTranscriber(GRAMMAR)
    _, turn_on = [utterance async for utterance in Utterances().of(wav_chunks(speech))]
    cut = [turn_on[: len(turn_on) * hundredths // 200 * 2] for hundredths in range(30, 101, 5)]
    heard = [ears.transcribe(utterance) for utterance in cut]
    assert set(heard) == {"", "turn on the light"}


async def test_samples_from_a_pipe_are_cut_into_the_same_utterances(speech: Path) -> None:
    pipe = asyncio.StreamReader()
    with wave.open(str(speech), "rb") as opened:
        samples = opened.readframes(opened.getnframes())
    pipe.feed_data(samples)
    pipe.feed_eof()

    async def odd() -> AsyncIterator[bytes]:
        while chunk := await pipe.read(CHUNK_BYTES):  # in pieces of no whole samples, as pipes do
            yield chunk[:333]
            yield chunk[333:]

    from_file = [utterance async for utterance in Utterances().of(wav_chunks(speech))]
    from_pipe = [utterance async for utterance in Utterances().of(odd())]
    assert from_file == from_pipe
    assert len(from_file) == 2


async def test_silence_and_clicks_are_no_utterances() -> None:
    async def quiet() -> AsyncIterator[bytes]:
        for number in range(200):
            yield (b"\x00\x40" if number == 100 else b"\x00\x00") * (CHUNK_BYTES // 2)

    assert [utterance async for utterance in Utterances().of(quiet())] == []
    assert SphinxTranscriber(GRAMMAR).transcribe(b"") == ""


async def test_who_never_pauses_is_cut_off() -> None:
    async def noise() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b"\x00\x40" * (CHUNK_BYTES // 2)

    cut = [utterance async for utterance in Utterances(longest_seconds=3).of(noise())]
    assert [len(utterance) // CHUNK_BYTES for utterance in cut] == [100, 100, 100, 100]


async def test_a_file_that_is_no_such_wav_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "song.wav"
    file.write_bytes(b"no wave at all")
    with pytest.raises(ChatError, match="cannot be read as a WAV file"):
        _ = [chunk async for chunk in wav_chunks(file)]
    with wave.open(str(file), "wb") as opened:
        opened.setparams((2, 2, 44_100, 0, "NONE", ""))
        opened.writeframes(b"\0" * 400)
    with pytest.raises(ChatError, match="16000 samples a second"):
        _ = [chunk async for chunk in wav_chunks(file)]


def test_a_grammar_that_cannot_be_used_is_told() -> None:
    with pytest.raises(ChatError, match="the grammar cannot be used: Failed"):
        SphinxTranscriber("public <order> = ( list;")


def test_words_that_a_recogniser_does_not_know_are_named() -> None:
    grammar = "public <order> = list my gizmotrons {tag} | /2/ turn on the <thing>; <thing> = light | Blorp;"
    with pytest.raises(ChatError, match=r"cannot be used: unknown words: gizmotrons, Blorp \("):
        SphinxTranscriber(grammar)
