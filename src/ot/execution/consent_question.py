"""The question that is put to the user before a tool that asks first is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ot.brief_repr import brief_repr, brief_text
from ot.execution.ask_user import Question
from ot.registry.proxy_target import PROXY
from ot.registry.tool import Tool
from ot.visible_text import printable, quoted

MAX_NAME, MAX_VALUE, MAX_ARGUMENTS, MAX_LINE = 100, 200, 1000, 200
MOST_CALLS = 10_000
"""What "always" comes to within one run, and the highest number that can be allowed."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is known of a call and of those like it that are to come: ``most`` is None where nobody can tell."""

    line: int | None = None
    text: str = ""
    waiting: int = 0
    most: int | None = 1


class Foresee(Protocol):
    """Tells what a program would still call."""

    def __call__(self, tool: str, line: int | None) -> Foreseen:
        """Return what is known of the calls of *tool*, one of which stands in *line*."""
        ...


def consent_question(
    tool: Tool,
    arguments: Mapping[str, Any],
    foreseen: Foreseen,
    *,
    calls: int,
    always: bool,
    redact: Callable[[str], str],
) -> Question:
    """Return what is asked: which tool, with what, from which line, how often, and what can be answered."""
    called = f"A program wants to call {printable(brief_text(tool.full_name, 2 * MAX_NAME))}{_kind(tool)}."
    lines = [called, f"Arguments: {arguments_text(tool, arguments, redact)}"]
    if foreseen.line:
        lines.append(f"Line {foreseen.line}: {printable(brief_text(foreseen.text, MAX_LINE, redact))}")
    lines += [_how_many(foreseen), f"A yes allows {calls} calls of it in this run, or as many as you say."]
    return Question(redact("\n".join(line for line in lines if line)), _schema(calls, always), kind="consent")


def arguments_text(tool: Tool, arguments: Mapping[str, Any], redact: Callable[[str], str] = str) -> str:
    """Return *arguments* on one line that no name and no value can break out of.

    What the tool requires comes first, then what else it declares; each is cut, and those left out are counted.
    """
    declared = {parameter.name: not parameter.required for parameter in tool.parameters}
    ordered = sorted(arguments, key=lambda name: declared.get(name, 2))
    shown: list[str] = []
    room = MAX_ARGUMENTS
    for name in ordered:
        if room <= 0:
            break
        value = brief_repr(arguments[name], min(MAX_VALUE, room), redact)
        shown.append(f"{_argument_name(name, name in declared, redact)}={value}")
        room -= len(shown[-1])
    hidden = len(arguments) - len(shown)
    more = f"and {hidden} more argument{'s' * (hidden > 1)}"
    return ", ".join([*shown, *([more] if hidden else [])]) or "none"


def _argument_name(name: str, declared: bool, redact: Callable[[str], str]) -> str:
    """Return a name as a call has it; one that only the program knows is quoted."""
    plain = declared and name.isascii() and name.isidentifier() and len(name) <= MAX_NAME
    return name if plain else quoted(brief_text(name, MAX_NAME, redact))


def _kind(tool: Tool) -> str:
    server = quoted(brief_text(tool.source.removeprefix(PROXY), MAX_NAME))
    of = f" of the server {server}" if tool.source.startswith(PROXY) else ""
    return of + (", which says it destroys" if tool.destructive else "")


def _how_many(foreseen: Foreseen) -> str:
    waiting = f"{foreseen.waiting} calls of it wait for the answer." if foreseen.waiting > 1 else ""
    if foreseen.most is None:
        return f"{waiting} It may be called again and again in this run: how often cannot be foreseen.".strip()
    most = max(foreseen.most, foreseen.waiting)
    return f"{waiting} The program would call it up to {most} times.".strip() if most > 1 else ""


def _schema(calls: int, always: bool) -> dict[str, Any]:
    choices = {"allow": "Allow, up to the number below in this run"}
    choices |= {"always": "Always allow this tool"} if always else {}
    choices |= {"deny": "Do not allow"}
    return {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "enum": list(choices),
                "enumNames": list(choices.values()),
            },
            "up_to": {
                "type": "integer",
                "title": "Calls allowed in this run",
                "minimum": 1,
                "maximum": MOST_CALLS,
                "default": calls,
            },
        },
        "required": ["decision"],
    }
