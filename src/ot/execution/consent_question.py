"""The question that is put to the user before a tool that asks first is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ot.execution.ask_user import Question
from ot.registry.tool import Tool

MAX_VALUE, MAX_ARGUMENTS = 200, 1000
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
    lines = [f"A program wants to call {tool.full_name}{_kind(tool)}.", f"Arguments: {arguments_text(arguments)}"]
    if foreseen.line:
        lines.append(f"Line {foreseen.line}: {_on_one_line(foreseen.text)}")
    lines += [_how_many(foreseen), f"A yes allows {calls} calls of it in this run, or as many as you say."]
    return Question(redact("\n".join(line for line in lines if line)), _schema(calls, always), kind="consent")


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return *arguments* on one line that no value can break out of, cut to a readable length."""
    shown = ", ".join(f"{name}={_cut(repr(value), MAX_VALUE)}" for name, value in arguments.items())
    return _cut(shown, MAX_ARGUMENTS) or "none"


def _kind(tool: Tool) -> str:
    if tool.source.startswith("proxy"):
        return f" of the server {tool.source.partition(':')[2]!r}" + (", which says it destroys" * tool.destructive)
    return ", which says it destroys" if tool.destructive else ""


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


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _on_one_line(text: str) -> str:
    """Return program text without what could move a cursor or turn its direction."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
