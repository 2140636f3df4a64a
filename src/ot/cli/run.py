"""onetool run: one command, the same way that a client's run() goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import ERRORS, FAILURE, OK
from ot.cli.terminal import echo, echo_value
from ot.cli.terminal.options import TrustProject

if TYPE_CHECKING:
    from ot.runtime.reply import Reply


def run(
    code: Annotated[str | None, typer.Argument(help="The program; - reads it from standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the program from a file.")] = None,
    trust_project: TrustProject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole reply as JSON.")] = False,
) -> None:
    """Run a program and print what it returns."""
    from ot.cli.terminal.event_loop import run_async

    reply = run_async(_run(_command(code, file), trust_project))
    if as_json:
        whole = {"content": list(reply.texts), "is_error": reply.is_error, "meta": reply.meta}
        echo(json.dumps(whole | ({"blocks": list(reply.blocks)} if reply.blocks else {})))
    else:
        for text in reply.texts:
            if reply.is_error:
                echo(text, nl=not text.endswith("\n"), err=True)
            else:
                echo_value(text)
        for block in reply.blocks:
            echo(_block_line(block), err=True)
    raise typer.Exit(ERRORS.get(reply.cause, FAILURE) if reply.is_error else OK)


def _block_line(block: Mapping[str, Any]) -> str:
    """Return a line that stands for content which a terminal cannot show."""
    inner: Mapping[str, Any] = block.get("resource") or block
    parts = [block.get("type"), inner.get("mimeType"), inner.get("uri")]
    data = str(inner.get("data") or inner.get("blob") or "")
    size = f"{len(data) * 3 // 4 - data[-2:].count('='):,} bytes" if data else ""
    return f"[{', '.join(str(part) for part in (*parts, size) if part)}]"


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
        ask = TerminalQuestion(app.ask_seconds)
        return await app.run(command, Caller(os_user(), client=CLI, ask=ask, opens=somebody_is_there()))
