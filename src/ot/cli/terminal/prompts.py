"""What is asked at the terminal, and what the person there answers.

Questions are on standard error, so that standard output stays the program's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import anyio.to_thread

from ot.cli.terminal import echo
from ot.errors import CannotAsk
from ot.execution.caller import Answer, Question
from ot.visible_text import visible

WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
NO_TERMINAL = "standard input and standard error are not a terminal"
COLUMNS = 80
"""Of a terminal that does not tell."""


def somebody_is_there() -> bool:
    """Return whether a person reads what is asked, and can type an answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@dataclass(frozen=True)
class TerminalQuestion:
    """Asks where somebody sits; an answer that is not understood is asked for again."""

    seconds: float

    async def __call__(self, question: Question) -> Answer:
        """Return the answer; raise CannotAsk if nobody sits there, or nobody answered in time."""
        if not somebody_is_there():
            raise CannotAsk(NO_TERMINAL)
        _forget_what_was_typed_before()
        try:
            async with asyncio.timeout(self.seconds):
                return await ASKED_BY[question.kind](question)
        except TimeoutError:
            raise CannotAsk(f"nobody answered within {self.seconds:g} s") from None
        except EOFError:
            return Answer("cancel")


def fit(text: str) -> str:
    """Return *text* in the width of this terminal; what continues a line is further in, so it passes for no other."""
    with contextlib.suppress(OSError):
        width = os.get_terminal_size(sys.stderr.fileno()).columns or COLUMNS
        return "\n".join(part for line in visible(text).split("\n") for part in _fit_line(line, width))
    return text


def _fit_line(line: str, width: int) -> list[str]:
    further = " " * (len(line) - len(line.lstrip()) + 4)
    return wrap(
        line, max(width, 2 * len(further)), subsequent_indent=further,
        replace_whitespace=False, expand_tabs=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip


async def _consent(question: Question) -> Answer:
    fields: Mapping[str, Any] = question.schema["properties"]
    number, known = fields.get("up_to", {}), fields["decision"]["enum"]
    always, server = "always" in known, "server" in known
    calls = number.get("default")
    echo(fit(question.message), err=True)
    words = f", all {calls}" if calls == number.get("maximum") else f" up to {calls}"
    yes = f"[y]es{words} (or a number)" if calls else "[y]es, this call"
    choices = yes + " · [a]lways" * always + " · always this [s]erver" * server + " · [n]o"
    while True:
        typed = (await _ask(f"{fit(choices)}: ")).lower()
        if typed in ("n", "no"):
            return Answer("decline")
        if typed in ("a", "always") and always:
            return Answer("accept", {"decision": "always"})
        if typed in ("s", "server") and server:
            return Answer("accept", {"decision": "server"})
        if typed in ("y", "yes"):
            return Answer("accept", {"decision": "allow"} | ({"up_to": calls} if calls else {}))
        if calls and typed.isascii() and typed.isdigit() and int(typed[:9]) >= 1:
            return Answer("accept", {"decision": "allow", "up_to": int(typed[:9])})


async def _form(question: Question) -> Answer:
    """Ask for each field of a form; an empty line takes the default, or leaves the field out."""
    echo(fit(question.message), err=True)
    fields: Mapping[str, Any] = question.schema.get("properties") or {}
    required = question.schema.get("required") or ()
    content: dict[str, Any] = {}
    for name, field in fields.items():
        value = await _field(name, field, name in required)
        if value is not None:
            content[name] = value
    agreed = (await _ask("send this? [y]es · [n]o: ")).lower() in ("y", "yes")
    return Answer("accept", content) if agreed else Answer("decline")


async def _address(question: Question) -> Answer:
    """Show the address; a browser is not started from here, since it may be one of this terminal."""
    echo(fit(question.message), err=True)
    echo(f"Open this address in a browser: {question.url}", err=True)
    agreed = (await _ask("go on? [y]es · [n]o: ")).lower() in ("y", "yes")
    return Answer("accept" if agreed else "decline")


ASKED_BY = {"consent": _consent, "form": _form, "url": _address}


async def _field(name: str, field: Mapping[str, Any], required: bool) -> Any:
    known = field.get("enum")
    words = f"{field.get('title') or name}" + (f" ({', '.join(map(str, known))})" if known else "")
    default = field.get("default")
    while True:
        typed = await _ask(f"{words}{f' [{default}]' if default is not None else ''}: ")
        if not typed and (default is not None or not required):
            return default
        try:
            value = _read(typed, field.get("type"))
        except ValueError:
            continue
        if typed and (not known or value in known):
            return value


def _read(typed: str, kind: Any) -> Any:
    """Return the typed text as a value of the field's type, or raise ValueError."""
    if kind == "boolean":
        if typed.lower() not in WORDS:
            raise ValueError(typed)
        return WORDS[typed.lower()]
    return int(typed) if kind == "integer" else float(typed) if kind == "number" else typed


async def _ask(prompt: str) -> str:
    echo(prompt, nl=False, err=True)
    return (await _line(sys.stdin.fileno())).strip()


async def _line(fd: int) -> str:
    """Return the next line of a terminal, which hands out whole lines, or raise EOFError; waiting can be cancelled."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    try:
        loop.add_reader(fd, there.set)
    except NotImplementedError:  # Windows
        typed = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    else:
        try:
            await there.wait()
        finally:
            loop.remove_reader(fd)
            os.set_blocking(fd, True)  # uvloop leaves it off, for everybody at this terminal
        typed = os.read(fd, 4096).decode(errors="replace")
    if not typed:
        raise EOFError
    return typed


def _forget_what_was_typed_before() -> None:
    """Drop what was typed before the question could be read: it does not answer it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
