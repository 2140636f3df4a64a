"""CommandAnswer: what a command has to print, whichever process found it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ot.cli.exit_codes import OK
from ot.cli.terminal import echo, echo_either, fail


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The same answer for a program and for a person, and what is said beside it on standard error."""

    value: Any
    lines: Sequence[str]
    warnings: Sequence[str] = ()
    """Said before it, to programs too."""
    notes: Sequence[str] = ()
    """Said after it, to people."""
    problem: str = ""
    code: int = OK


class CommandFailed(Exception):
    """There is no answer; the command ends with *code*."""

    def __init__(self, why: str, code: int) -> None:
        """Say why."""
        super().__init__(why)
        self.code = code


def print_answer(find: Callable[[], CommandAnswer], *, as_json: bool) -> None:
    """Print what *find* returns, and end the command with its code."""
    try:
        answer = find()
    except CommandFailed as failed:
        fail(str(failed), failed.code)
    for warning in answer.warnings:
        echo(warning, err=True)
    echo_either(as_json, answer.value, answer.lines)
    for note in () if as_json else answer.notes:
        echo(note, err=True)
    if answer.problem:
        fail(answer.problem, answer.code)
