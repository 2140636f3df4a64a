"""onetool run: one command, the same way that a client's run() goes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ot.cli.terminal import echo
from ot.cli.terminal.command_answer import reply_as_data
from ot.cli.terminal.options import TrustProject
from ot.cli.terminal.printed_answers import print_reply

if TYPE_CHECKING:
    from ot.runtime.reply import Reply
    from ot.runtime.run_events import RunEvent


def run(
    code: Annotated[str | None, typer.Argument(help="The program; - reads it from standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the program from a file.")] = None,
    trust_project: TrustProject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole reply as JSON.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="DIR", file_okay=False, help="Write images and other media to files in DIR."),
    ] = None,
) -> None:
    """Run a program and print what it returns."""
    from ot.cli.terminal.event_loop import run_async

    reply = run_async(_run(_command(code, file), trust_project))
    raise typer.Exit(print_reply(reply_as_data(reply), as_json=as_json, save=str(save or "")))


def _command(code: str | None, file: Path | None) -> str:
    if (code is None) == (file is None):
        raise typer.BadParameter("give the program, or --file FILE, or - for standard input")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"cannot read {file}: {error}") from None
    return sys.stdin.read() if code == "-" else code or ""


async def _run(command: str, trust_project: bool) -> Reply:
    from ot.cli.terminal.own_workspace import own_workspace
    from ot.cli.terminal.prompts import TerminalQuestion, somebody_is_there
    from ot.config.principal import os_user
    from ot.execution.caller import Caller
    from ot.stats.rows import CLI

    async with own_workspace(terminal_level="WARNING", trust_project=trust_project) as app:
        caller = Caller(os_user(), client=CLI, ask=TerminalQuestion(app.ask_seconds), opens=somebody_is_there())
        return await app.run(command, caller, tell=_show_progress if sys.stderr.isatty() else None)


def _show_progress(event: RunEvent) -> None:
    from ot.runtime.run_events import Progress

    if isinstance(event, Progress) and event.message:
        echo(event.message, err=True)
