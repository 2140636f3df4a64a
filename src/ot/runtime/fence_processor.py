"""Takes Markdown fences, inline backticks and run prefixes off a command."""

from __future__ import annotations

import re

from ot.errors import InvalidSyntax

MAX_LAYERS = 3
"""What is wrapped more often was not meant to be run."""
PREFIX = re.compile(
    r"(?:\s*+(?:mcp__onetool__run|__onetool__run|__onetool|__ot__run|__ot)(?![\w.=\[])[ \t]*+:?+[ \t]*+\n?+)++"
)
"""How people and models address OneTool in a chat, however often; a name such as __other does not match."""
OPENING = re.compile(r"(?P<fence>`{3,}+|~{3,}+)[ \t]*+[\w+-]*+[ \t]*+")
"""The first line of a fenced block."""
INLINE = re.compile(r"(?P<tick>`{1,2}+)(?P<code>[^`\n]++)(?P=tick)")


def strip_fences(command: str) -> str:
    """Return the code inside *command*; text that is not wholly wrapped comes back unchanged.

    Raises:
        InvalidSyntax: It is wrapped too often, or starts with the ``!onetool`` prefix of old.
    """
    # Until nothing changes, so that stripping a stripped command is a no-op.
    for _ in range(MAX_LAYERS + 1):
        stripped = _strip_once(command)
        if stripped == command:
            break
        command = stripped
    else:
        raise InvalidSyntax(
            f"SyntaxError: the program is wrapped in more than {MAX_LAYERS} fences; give only the program", 1
        )
    if command.lstrip().startswith("!onetool"):
        raise InvalidSyntax(
            "SyntaxError: invalid syntax: '!onetool' is not a command, give the Python program itself, e.g. ot.help()",
            line=1,
        )
    return command


def _strip_once(command: str) -> str:
    text = command.strip()
    if prefix := PREFIX.match(text):
        return text[prefix.end() :] or command
    if text.startswith(("```", "~~~")):
        inside = _inside_fence(text)
        return command if inside is None else inside
    inline = INLINE.fullmatch(text)
    return inline["code"] if inline else command


def _inside_fence(text: str) -> str | None:
    first, line_end, body = text.partition("\n")
    opening = OPENING.fullmatch(first)
    if not opening or not line_end:
        return None
    close = body.find(opening["fence"], len(body.rstrip("`~")))
    if close >= 0:
        return body[:close].removesuffix("\n")
    # A reply cut off before its closing fence; a fence further down means that there is more than code.
    return None if "```" in body or "~~~" in body else body
