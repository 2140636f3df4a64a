"""onetool listen: speech becomes questions to a model that has the tools of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onetool_chat.cli.options import Model, Packs, Provider
from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import echo, echo_json, echo_value
from ot.cli.terminal.options import TrustProject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from onetool_chat.cli.chat_room import ChatRoom
    from onetool_chat.transcribers import Heard, Transcriber


def listen(
    file: Annotated[Path | None, typer.Argument(help="A WAV file; without it, the microphone (experimental).")] = None,
    orders: Annotated[
        str,
        typer.Option(
            help="Sentences to recognise offline, separated by |; without them, free speech by Whisper (experimental)."
        ),
    ] = "",
    whisper: Annotated[str, typer.Option(help="The Whisper model for free speech.")] = "base.en",
    provider: Provider = None,
    model: Model = "",
    packs: Packs = "",
    trust_project: TrustProject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each question with its answer as JSON.")] = False,
) -> None:
    """Answer speech, from a file or the microphone, with your tools.

    The microphone and free speech by Whisper are experimental: no automatic test runs them.
    """
    from onetool_chat.audio import microphone_chunks, wav_chunks
    from onetool_chat.cli.chat_room import open_room
    from onetool_chat.transcribers import SphinxTranscriber, WhisperTranscriber

    chunks = wav_chunks(file) if file else microphone_chunks()  # a file is read before a key and servers are asked for
    with open_room(provider, model, packs, trust_project=trust_project) as (runner, room):
        heard_by = SphinxTranscriber(f"public <order> = {orders};") if orders else WhisperTranscriber(whisper)
        ok = runner.run(_listen(room, chunks, heard_by, as_json))
    raise typer.Exit(OK if ok else FAILURE)


async def _listen(room: ChatRoom, chunks: AsyncIterator[bytes], transcriber: Transcriber, as_json: bool) -> bool:
    from onetool_chat.transcribers import BackgroundTranscriber

    ears = BackgroundTranscriber(
        transcriber, room.conversation, on_heard=lambda heard: _tell(heard, room.redact(heard.error), as_json)
    )
    heard = await ears.listen(chunks)
    if not heard:
        echo("onetool: nothing was understood", err=True)
    return bool(heard) and not any(one.error for one in heard)


def _tell(heard: Heard, error: str, as_json: bool) -> None:
    if as_json:
        echo_json({"question": heard.question, "answer": heard.answer, "error": error})
        return
    echo(f"> {heard.question}")
    if error:
        echo(f"onetool: {error}", err=True)
    else:
        echo_value(f"{heard.answer}\n")
