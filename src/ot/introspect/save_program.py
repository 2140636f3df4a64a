"""ot.save: a saved program that a model wrote, in the user's directory, once the user has read all of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from ot.config.principal import os_user
from ot.errors import CannotAsk, NotApproved
from ot.execution.caller import Question
from ot.execution.tool_context import current_tool_context
from ot.registry.saved_programs import SavedProgram, new_program, write_program
from ot.visible_text import printable

TOOL = "ot.save"
MOST_LINES, MOST_COLUMNS, MOST_EMPTY, BLANKS = 200, 160, 2, " " * 9
"""What a person reads: beyond it a question would hide something."""
CHOICES = {"type": "string", "title": "Decision", "enum": ["allow", "deny"], "enumNames": ["Save it", "Do not save it"]}
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"decision": CHOICES}, "required": ["decision"]}


async def save_program(
    name: str, source: str, redact: Callable[[str], str], reload: Callable[[], Awaitable[None]]
) -> dict[str, Any]:
    """Return the tools that *source* adds, written where the user's saved programs are.

    Raises:
        NotApproved: The user does not want it, or cannot be asked.
    """
    context = current_tool_context()
    if context.caller.principal != os_user() or not context.caller.admin or context.user_dir is None:
        raise PermissionError(f"{TOOL} writes to the directory of a user who is alone here: on this server nobody is")
    directory = context.user_dir
    program = await anyio.to_thread.run_sync(new_program, directory, name, source, context.registry.packs)
    if redact(program.text) != program.text:
        raise ValueError("it holds a secret: have a tool read it, and leave it out")
    await _ask(program, directory)
    await anyio.to_thread.run_sync(write_program, program)
    await reload()
    return {"file": str(program.file), "tools": [tool.full_name for tool in program.tools]}


async def _ask(program: SavedProgram, directory: Path) -> None:
    ask = current_tool_context().caller.ask
    message, arguments = _question(program, directory), {"name": program.name, "source": program.text}
    try:
        if ask is None:
            raise CannotAsk("nobody is available to answer")
        answer = await ask(Question(message, SCHEMA, "consent", TOOL, arguments))
    except CannotAsk as error:
        raise NotApproved(TOOL, f"it always asks first, and {error}. The user can save a run: onetool save") from None
    if answer.action != "accept" or answer.content.get("decision") != "allow":
        raise NotApproved(TOOL, "the user said no")


def _question(program: SavedProgram, directory: Path) -> str:
    """Return the question with every line of the program; raise ValueError for one that hides some of it."""
    lines = program.text.removesuffix("\n").expandtabs(4).split("\n")
    if len(lines) > MOST_LINES or max(map(len, lines)) > MOST_COLUMNS:
        most = f"{MOST_LINES} lines of {MOST_COLUMNS} characters"
        raise ValueError(f"it is longer than a person reads in a question ({most}): make it several programs")
    stripped = [line.strip() for line in lines]
    if any(BLANKS in line for line in stripped) or "\n" * (MOST_EMPTY + 2) in "\n".join(stripped):
        raise ValueError("it holds many blanks or empty lines in a row, behind which a person would not look")
    tools = ", ".join(tool.full_name for tool in program.tools)
    head = f"{TOOL}: a program wants to save a program of {len(lines)} lines, which later ones can call: {tools}."
    place = f"It goes to {program.file.relative_to(directory)} in your OneTool directory. All of it:"
    shown = [f"{number:>3} | {printable(line)}" for number, line in enumerate(lines, 1)]
    return "\n".join([head, place, *shown, "What it calls is allowed, asked about and denied as any call is."])
