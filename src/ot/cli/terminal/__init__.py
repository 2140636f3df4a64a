"""What commands share: printing, prompts, completion. Text from others cannot steer the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ot.cli.exit_codes import FAILURE
from ot.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Column
    from rich.text import Text

NOT_TRUSTED = "The project is not trusted and is not used: look at it, then run onetool trust."


class Styled(NamedTuple):
    """A piece of text in a colour or weight."""

    text: str
    fg: str | None = None
    bold: bool | None = None
    dim: bool | None = None


def echo_progress(line: str) -> None:
    """Print *line* on standard error, for a person who watches and nobody else."""
    if sys.stderr.isatty():
        echo(line, err=True)


def echo(*parts: str | Styled, nl: bool = True, err: bool = False) -> None:
    """Print *parts* beside each other; whatever could steer a terminal is written out, also into a file or pipe."""
    plain = [part for part in parts if isinstance(part, str)]
    if len(plain) == len(parts):
        _write(visible("".join(plain)) + "\n" * nl, err=err)
        return
    # Its import takes longer than many a command.
    import typer

    def style(part: str | Styled) -> str:
        if isinstance(part, str):
            return visible(part)
        return typer.style(visible(part.text), fg=part.fg, bold=part.bold, dim=part.dim)

    typer.echo("".join(map(style, parts)), nl=nl, err=err)


def _write(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    stream.write(text)
    stream.flush()


def echo_value(text: str) -> None:
    """Print what a program or a model made: to a file or pipe as it is, to a terminal as ``echo`` does."""
    _write((visible(text) if sys.stdout.isatty() else text) + "\n" * (not text.endswith("\n")))


def echo_json(value: Any) -> None:
    """Print *value* for a program."""
    echo(json.dumps(value))


def echo_either(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print *value* for a program, or *lines* for a person."""
    for line in [json.dumps(value)] if as_json else lines:
        echo(line)


def pluralize(count: int, thing: str) -> str:
    """Return ``1 tool`` or ``5 tools``."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return *rows* as lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def fail(why: str, code: int = FAILURE) -> NoReturn:
    """Say *why*, and end the command with *code*."""
    import typer

    echo(f"onetool: {why}", err=True)
    raise typer.Exit(code)


def confirm(question: str, done: str) -> bool:
    """Return whether the person at the terminal says yes; where nobody sits, say how it is *done* without."""
    import typer

    if not sys.stdin.isatty():
        echo(f"Not asking without a terminal: add --yes to {done} it.", err=True)
        return False
    return typer.confirm(visible(question), err=True)


class Screen:
    """Prints text in styles, and tables, as wide as the terminal is."""

    def __init__(self) -> None:
        """Print on standard output."""
        from rich.console import Console

        self._console = Console(highlight=False, soft_wrap=True)

    def print(self, *parts: str | tuple[str, str], end: str = "\n") -> None:
        """Print *parts*, each a text, or a text and its style."""
        from rich.text import Text

        self._console.print(Text().join(map(_text, parts)), end=end)

    def program(self, code: str) -> None:
        """Print a Python program in colours, indented."""
        from rich.syntax import Syntax

        shown = indent(visible(code).strip("\n"), "    ")
        text = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(shown)
        self._console.print(text, end="")

    def spinner(self, words: str) -> Status | None:
        """Return something that turns beside *words* between its start and its stop, where there is a terminal."""
        return self._console.status(visible(words), spinner_style="dim") if self._console.is_terminal else None

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | tuple[str, str]]]) -> None:
        """Print *rows* below *columns*."""
        from rich.table import Table

        table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for row in rows:
            table.add_row(*map(_text, row))
        self._console.print(table, soft_wrap=False)


def open_console() -> Console:
    """Return a console that draws whole screens; the caller escapes what could steer the terminal."""
    from rich.console import Console

    return Console(highlight=False)


def _text(part: str | tuple[str, str]) -> Text:
    from rich.text import Text

    text, style = (part, "") if isinstance(part, str) else part
    return Text(visible(text), style)
