"""onetool chat: a conversation with a model that has the tools of this machine."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from onetool_chat.cli.options import Model, Packs, Provider
from ot.cli.exit_codes import OK, exit_code
from ot.cli.terminal import echo, echo_json, echo_value
from ot.cli.terminal.options import TrustProject

if TYPE_CHECKING:
    from onetool_chat.cli.chat_room import ChatRoom

LEAVE = ("exit", "quit", "/exit", "/quit")


def chat(
    question: Annotated[
        str | None, typer.Argument(help="Ask this and exit; without it: a conversation, or standard input.")
    ] = None,
    provider: Provider = None,
    model: Model = "",
    packs: Packs = "",
    trust_project: TrustProject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer, calls and tokens as JSON.")] = False,
) -> None:
    """Talk to a model that can use your tools; Ctrl-C stops an answer, twice exits."""
    from onetool_chat.cli.chat_room import open_room

    talks = question is None and sys.stdin.isatty() and not as_json
    asked = question if question is not None or talks else sys.stdin.read()
    with open_room(provider, model, packs, shown=talks, trust_project=trust_project) as (runner, room):
        if asked is None:
            _talk(runner, room)
        code = OK if asked is None else runner.run(_one(room, asked.strip(), as_json))
    raise typer.Exit(code)


async def _one(room: ChatRoom, question: str, as_json: bool) -> int:
    """Show the answer to one question, and return how the command ends."""
    from ot.errors import ChatError

    if not question:
        raise typer.BadParameter("there is no question: give one, or type one at a terminal")
    try:
        answer = await room.conversation.ask(question)
    except ChatError as error:
        if as_json:
            echo_json({"error": room.redact(str(error)), "kind": type(error).__name__, **room.facts()})
        else:
            echo(f"onetool: {room.redact(str(error))}", err=True)
        return exit_code(error)
    if as_json:
        echo_json({"answer": answer.text, "turns": answer.turns, **room.facts()})
    else:
        echo_value(f"{answer.text}\n")
    return OK


def _talk(runner: asyncio.Runner, room: ChatRoom) -> None:
    """Hold a conversation until the user leaves it."""
    from onetool_chat.cli.chat_commands import ChatCommands
    from onetool_chat.cli.question_line import question_reader

    room.greet()
    commands, read = ChatCommands(room), question_reader(runner, room.saved_chats / "questions")
    interrupted = False
    while True:
        try:
            question = read()
            interrupted = False
            if question.lower() in LEAVE:
                return
            if question.startswith("/"):
                runner.run(commands.run(question))
            elif question:
                runner.run(_show_answer(room, question))
        except EOFError:
            return
        except KeyboardInterrupt:
            if interrupted:
                return
            interrupted = True
            room.screen.note("stopped; Ctrl-C again leaves")


async def _show_answer(room: ChatRoom, question: str) -> None:
    from ot.errors import ChatError

    room.screen.begin()
    try:
        room.screen.end(await room.conversation.ask(question), room.conversation.usage)
    except ChatError as error:
        room.screen.fail(str(error))
