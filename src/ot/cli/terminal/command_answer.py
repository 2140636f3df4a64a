"""CommandAnswer: what a command has to print, whichever process found it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ot.cli.exit_codes import OK

if TYPE_CHECKING:
    from ot.runtime.reply import Reply


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


def answer_as_data(find: Callable[[], CommandAnswer]) -> dict[str, Any]:
    """Run *find* and return its result as plain data."""
    try:
        return asdict(find())
    except CommandFailed as failed:
        return {"problem": str(failed), "code": failed.code}


def reply_as_data(reply: Reply) -> dict[str, Any]:
    """Return the printed part of *reply*, and the cause of its failure."""
    whole = {"content": list(reply.texts), "is_error": reply.is_error, "meta": reply.meta, "cause": reply.cause}
    return whole | ({"blocks": list(reply.blocks)} if reply.blocks else {})
