"""onetool listen: speech becomes questions to a model that has the tools of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ot.cli.terminal import echo, echo_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ot.chat.background_transcriber import Heard
    from ot.chat.transcriber import Transcriber
    from ot.cli.chat_room import ChatRoom


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    example = "Example: onetool listen --orders 'list my tools | turn on the light' orders.wav"
    app.command("listen", epilog=example, short_help="Answer what is said, with your tools.")(listen)


def listen(
    file: Annotated[Path | None, typer.Argument(help="A WAV file; without it, the microphone.")] = None,
    orders: Annotated[
        str, typer.Option(help="Sentences to recognise offline, divided by |; without them, free speech by Whisper.")
    ] = "",
    whisper: Annotated[str, typer.Option(help="The Whisper model for free speech.")] = "base.en",
    provider: Annotated[
        Literal["anthropic", "ollama"] | None, typer.Option(help="Whose model answers; as chat.provider.")
    ] = None,
    model: Annotated[str, typer.Option(help="The model's name; as chat.model.")] = "",
    packs: Annotated[
        str, typer.Option(help="Give the model the tools of these packs, separated by commas, instead of run.")
    ] = "",
    trust_project: Annotated[
        bool, typer.Option("--trust-project", help="Use the project's .onetool/ without asking: for CI.")
    ] = False,
) -> None:
    """Answer what is said, in a file or into the microphone, with your tools."""
    from ot.chat.audio import require_wav
    from ot.cli.chat_room import ChatRoom
    from ot.cli.event_loop import new_runner

    if file:
        require_wav(file)  # before a key is asked for, and servers are
    with new_runner() as runner:
        chosen = tuple(filter(None, packs.split(",")))
        room = runner.run(ChatRoom.open(provider, model, chosen, trusted=trust_project))
        try:
            ok = runner.run(_listen(room, _chunks(file), _transcriber(orders, whisper)))
        finally:
            runner.run(room.aclose())
    raise typer.Exit(0 if ok else 1)


async def _listen(room: ChatRoom, chunks: AsyncIterator[bytes], transcriber: Transcriber) -> bool:
    from ot.chat.background_transcriber import BackgroundTranscriber

    ears = BackgroundTranscriber(
        transcriber, room.conversation, told=lambda heard: _tell(heard, room.redact(heard.error))
    )
    heard = await ears.listen(chunks)
    if not heard:
        echo("onetool: nothing was understood", err=True)
    return bool(heard) and not any(one.error for one in heard)


def _tell(heard: Heard, error: str) -> None:
    echo(f"> {heard.question}")
    if error:
        echo(f"onetool: {error}", err=True)
    else:
        echo_value(f"{heard.answer}\n")


def _chunks(file: Path | None) -> AsyncIterator[bytes]:
    from ot.chat.audio import wav_chunks
    from ot.chat.microphone import microphone_chunks

    return wav_chunks(file) if file else microphone_chunks()


def _transcriber(orders: str, whisper: str) -> Transcriber:
    from ot.chat.sphinx_transcriber import SphinxTranscriber
    from ot.chat.whisper_transcriber import WhisperTranscriber

    return SphinxTranscriber(f"public <order> = {orders};") if orders else WhisperTranscriber(whisper)
