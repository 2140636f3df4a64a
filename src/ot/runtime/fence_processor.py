"""Takes Markdown fences, inline backticks and run prefixes off a command."""

from __future__ import annotations

import re

from ot.errors import InvalidSyntax

PREFIX = re.compile(r"(?:mcp__onetool__run|__onetool__run|__onetool|__ot__run|__ot)(?![\w.=\[])[ \t]*:?[ \t]*\n?")
"""How people and models address OneTool in a chat; a name such as __other does not match."""
FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\n(?P<code>.*?)\n?(?P=fence)[`~]*", re.DOTALL)
OPEN_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+-]*[ \t]*\n(?P<code>.*)", re.DOTALL)
INLINE = re.compile(r"(?P<tick>`{1,2})(?!`)(?P<code>[^`\n]+)(?P=tick)")


def strip_fences(command: str) -> str:
    """Return the code inside *command*; text that is not wholly wrapped comes back unchanged.

    Raises:
        InvalidSyntax: The command starts with the ``!onetool`` prefix of old.
    """
    # Until nothing changes, so that stripping a stripped command is a no-op.
    while (stripped := _strip_once(command)) != command:
        command = stripped
    if command.lstrip().startswith("!onetool"):
        raise InvalidSyntax(
            "SyntaxError: invalid syntax: '!onetool' is not a command, give the Python program itself, e.g. ot.help()",
            line=1,
        )
    return command


def _strip_once(command: str) -> str:
    text = command.strip()
    if prefix := PREFIX.match(text):
        return text[prefix.end() :] if text[prefix.end() :].strip() else command
    if text.startswith(("```", "~~~")):
        inside = _inside_fence(text)
        return command if inside is None else inside
    inline = INLINE.fullmatch(text)
    return inline["code"] if inline else command


def _inside_fence(text: str) -> str | None:
    if whole := FENCE.fullmatch(text):
        return whole["code"]
    opened = OPEN_FENCE.fullmatch(text)
    # A reply cut off before its closing fence; a fence further down means that there is more than code.
    if opened and "```" not in opened["code"] and "~~~" not in opened["code"]:
        return opened["code"]
    return None
