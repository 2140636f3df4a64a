"""onetool run: one command, the same way that a client's run() goes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import echo, echo_value

if TYPE_CHECKING:
    from ot.runtime.reply import Reply


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog="""Example: onetool run 'file.search(pattern="TODO", path="src")'""")(run)


def run(
    code: Annotated[str | None, typer.Argument(help="The program; - reads it from standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the program from a file.")] = None,
    trust_project: Annotated[
        bool, typer.Option("--trust-project", help="Use the project's .onetool/ without asking: for CI.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole reply as JSON.")] = False,
) -> None:
    """Run a program and print what it returns."""
    from ot.cli.event_loop import run_async

    reply = run_async(_run(_command(code, file), trust_project))
    if as_json:
        whole = {"content": list(reply.texts), "is_error": reply.is_error, "meta": reply.meta}
        echo(json.dumps(whole | ({"blocks": list(reply.blocks)} if reply.blocks else {})))
    else:
        for text in reply.texts:
            _print(text, reply.is_error)
        for block in reply.blocks:
            echo(_block_line(block), err=True)
    raise typer.Exit(1 if reply.is_error else 0)


def _print(text: str, is_error: bool) -> None:
    if is_error:
        echo(text, nl=not text.endswith("\n"), err=True)
    else:
        echo_value(text)


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
    from ot.app import App
    from ot.cli.own_log import start_log
    from ot.cli.terminal_question import TerminalQuestion
    from ot.config.paths import Paths
    from ot.logs import end_logs
    from ot.stats.rows import CLI

    app = App(Paths.find(), trust_project=trust_project)
    start_log(app, terminal_level="WARNING")
    try:
        return await app.run(command, ask=TerminalQuestion(app.ask_seconds), client=CLI)
    finally:
        await app.aclose()
        end_logs()
