"""onetool run: one command, the same way that a client's run() goes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.exit_codes import FAILURE, OK
from ot.cli.terminal import echo
from ot.cli.terminal.command_answer import reply_as_data
from ot.cli.terminal.options import TrustProject
from ot.cli.terminal.printed_answers import print_reply

if TYPE_CHECKING:
    from ot.runtime.pack_proxy import Tape
    from ot.runtime.reply import Reply
    from ot.runtime.run_events import RunEvent
    from ot.workspace import Workspace

START_SECONDS = 1.0
"""How long a server may take to start before who waits is told."""


def run(
    code: Annotated[str | None, typer.Argument(help="The program; - reads it from standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the program from a file.")] = None,
    trust_project: TrustProject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole reply as JSON.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="DIR", file_okay=False, help="Write images and other media to files in DIR."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", dir_okay=False, help="Write the run's calls to FILE.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Answer calls as recorded in FILE; no tool is called."),
    ] = None,
) -> None:
    """Run a program and print what it returns."""
    from ot.cli.terminal.event_loop import run_async

    if record and replay:
        raise typer.BadParameter("give --record or --replay, not both")
    reply, problems = run_async(_run(_command(code, file), trust_project, record, replay))
    ended = print_reply(reply_as_data(reply), as_json=as_json, save=str(save or ""))
    for problem in problems:
        echo(f"onetool: {problem}", err=True)
    raise typer.Exit(ended or (FAILURE if problems else OK))


def _command(code: str | None, file: Path | None) -> str:
    if (code is None) == (file is None):
        raise typer.BadParameter("give the program, or --file FILE, or - for standard input")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"cannot read {file}: {error}") from None
    return sys.stdin.read() if code == "-" else code or ""


async def _run(
    command: str, trust_project: bool, record: Path | None, replay: Path | None
) -> tuple[Reply, Sequence[str]]:
    """Return the reply, and what went wrong with the recording or the replay."""
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.cli.terminal.prompts import TerminalQuestion, somebody_is_there
    from ot.config.principal import os_user
    from ot.execution.caller import Answer, Caller, Question
    from ot.stats.rows import CLI

    async with own_workspace(terminal_level="WARNING", trust_project=trust_project) as app:
        tape = _open_tape(app, command, record, replay)
        asking, question = asyncio.Lock(), TerminalQuestion(app.ask_seconds)

        async def ask(asked: Question) -> Answer:
            async with asking:
                return await question(asked)

        caller = Caller(os_user(), client=CLI, ask=ask, opens=somebody_is_there())
        if not sys.stderr.isatty():
            return await app.run(command, caller, tape=tape), tape.finish() if tape else ()
        watching = asyncio.create_task(_tell_starts(app, asking))
        try:
            return await app.run(command, caller, tell=show_progress(), tape=tape), tape.finish() if tape else ()
        finally:
            watching.cancel()


def _open_tape(app: Workspace, command: str, record: Path | None, replay: Path | None) -> Tape | None:
    if not record and not replay:
        return None
    from ot.runtime.cassettes.cassette import read_cassette
    from ot.runtime.cassettes.recording import Recording
    from ot.runtime.cassettes.replay import Replay

    redact = app.picture.loaded.secrets.redact
    try:
        return Replay(read_cassette(replay), redact) if replay else Recording(redact, record, command)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {replay}: {error.strerror or error}") from None


async def _tell_starts(app: Workspace, asking: asyncio.Lock) -> None:
    """Tell of servers that have been starting for a while, each once, and not onto the line of a question."""
    told: set[str] = set()
    while True:
        await asyncio.sleep(START_SECONDS / 2)
        async with asking:
            states = {name: app.host.servers.state(spec) for name, spec in app.picture.servers.items()}
            begun = time.time() - START_SECONDS
            slow = [n for n, s in states.items() if s and s["state"] == "starting" and s["since"] <= begun]
            if new := [name for name in slow if name not in told]:
                told.update(new)
                echo(f"starting {', '.join(new)} ...", err=True)


def show_progress() -> Callable[[RunEvent], None]:
    """Return a function that shows tools' progress; of a pack's installation only one line, as the log has the rest."""
    from ot.runtime.run_events import Progress

    installed: set[str] = set()

    def show(event: RunEvent) -> None:
        if not isinstance(event, Progress) or not event.message:
            return
        pack = event.tool.partition(".")[0]
        if not event.message.startswith(f"{pack}: "):
            echo(" ".join(event.message.split()), err=True)
        elif pack not in installed:
            installed.add(pack)
            echo(f"{pack}: installing its packages, at the first call alone (details: onetool logs)", err=True)

    return show
