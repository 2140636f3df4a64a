"""onetool chat: a conversation with a model that has the tools of this machine."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ot.cli.terminal import echo, echo_value
from ot.cli.typed_line import typed_line

if TYPE_CHECKING:
    from ot.cli.chat_room import ChatRoom

LEAVE = ("exit", "quit", "/exit", "/quit")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "chat",
        short_help="Talk to a model that can use your tools.",
        epilog="Example: onetool chat --provider ollama --packs file 'what is in this directory?'",
    )(chat)


def chat(
    question: Annotated[
        str | None, typer.Argument(help="Ask this and end; without it: a conversation, or all of standard input.")
    ] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer, calls and tokens as JSON.")] = False,
) -> None:
    """Talk to a model that can use your tools; Ctrl-C stops an answer, twice leaves."""
    from ot.cli.chat_room import ChatRoom
    from ot.cli.event_loop import new_runner

    talks = question is None and sys.stdin.isatty() and not as_json
    asked = question if question is not None or talks else sys.stdin.read()
    with new_runner() as runner:
        chosen = tuple(filter(None, packs.split(",")))
        room = runner.run(ChatRoom.open(provider, model, chosen, shown=talks, trusted=trust_project))
        try:
            ok = _talk(runner, room) if asked is None else runner.run(_one(room, asked.strip(), as_json))
        finally:
            runner.run(room.aclose())
    raise typer.Exit(0 if ok else 1)


async def _one(room: ChatRoom, question: str, as_json: bool) -> bool:
    from ot.errors import ChatError

    if not question:
        raise typer.BadParameter("there is no question: give one, or type one at a terminal")
    try:
        answer = await room.conversation.ask(question)
    except ChatError as error:
        if as_json:
            echo(json.dumps({"error": room.redact(str(error)), "kind": type(error).__name__, **room.facts()}))
        else:
            echo(f"onetool: {room.redact(str(error))}", err=True)
        return False
    found = {"answer": answer.text, "turns": answer.turns, **room.facts()}
    if as_json:
        echo(json.dumps(found))
    else:
        echo_value(f"{answer.text}\n")
    return True


def _talk(runner: asyncio.Runner, room: ChatRoom) -> bool:
    """Hold a conversation until the user leaves it."""
    room.screen.greet(room.model, room.tools)
    interrupted = False
    while True:
        try:
            question = typed_line("\n> ")
            interrupted = False
            if question.lower() in LEAVE:
                return True
            if question:
                runner.run(_shown(room, question))
        except EOFError:
            return True
        except KeyboardInterrupt:
            if interrupted:
                return True
            interrupted = True
            room.screen.note("stopped; Ctrl-C again leaves")


async def _shown(room: ChatRoom, question: str) -> None:
    from ot.errors import ChatError

    try:
        answer = await room.conversation.ask(question)
        room.screen.end(answer)
    except ChatError as error:
        room.screen.fail(room.redact(str(error)))
