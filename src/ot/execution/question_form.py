"""What a question says of a call: the tool first, then its arguments as a person reads them.

Everything that a program supplied is in quotes on one line, or behind a mark at the beginning of each line, and cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from ot.brief_repr import brief_repr, brief_text, quote_text
from ot.registry.proxy_target import PROXY
from ot.registry.tool import Tool
from ot.visible_text import printable

MAX_NAME, MAX_VALUE, MAX_ARGUMENTS = 100, 200, 1000
ONE_LINE = 100
"""Arguments that fit this stand on one line."""
MAX_LINES, MAX_LINE = 20, 120
"""Of one text, difference or nested value."""
MAX_DIFFERENCE = 64 << 10
MAX_DEPTH = 4
PAIRS = (("old", "new"), ("old_text", "new_text"), ("old_string", "new_string"), ("oldText", "newText"))
"""Parameters of tools that replace a text by another."""

type Redact = Callable[[str], str]
type ReadText = Callable[[str], str | None]
"""Returns the text of the file at a path that a program names; None where there is none to compare with."""


def tool_text(tool: Tool) -> str:
    """Return the tool's name and what is to be known of it."""
    server = quote_text(tool.source.removeprefix(PROXY), MAX_NAME)
    of = f" of the server {server}" if tool.source.startswith(PROXY) else ""
    name = printable(brief_text(tool.full_name, 2 * MAX_NAME))
    return name + of + (", marked as destructive" if tool.destructive else "")


def argument_lines(tool: Tool, arguments: Mapping[str, Any], redact: Redact, before: str | None = None) -> list[str]:
    """Return *arguments* in lines; *before* is the text of the file that the call would write.

    What the tool requires comes first, then what else it declares; what does not fit is counted.
    """
    declared = {parameter.name: not parameter.required for parameter in tool.parameters}
    ordered = sorted(arguments, key=lambda name: declared.get(name, 2))
    names = {name: _argument_name(name, name in declared, redact) for name in ordered[:MAX_NAME]}
    short = _on_one_line(arguments, names, redact) if before is None else ""
    if short and len(ordered) == len(names):
        return [f"Arguments: {short}"]
    lines, room, shown = ["Arguments:"], MAX_ARGUMENTS, 0
    old, new = next((pair for pair in PAIRS if set(pair) <= arguments.keys()), ("", ""))
    for name, written in names.items():
        if room <= 0:
            break
        shown += 1
        if old and name in (old, new):
            lines += [f"  {old}, {new}:", *_difference(arguments[old], arguments[new], redact)] if name == old else []
            continue
        if name == "content" and before is not None and isinstance(arguments[name], str):
            lines += [f"  {written}: a change of the file", *_difference(before, arguments[name], redact)]
            continue
        value = list(_value_lines(arguments[name], f"  {written}:", redact, min(MAX_VALUE, room)))
        lines += value
        room -= sum(map(len, value))
    hidden = len(arguments) - shown
    return [*lines, *([f"  and {hidden} more argument{'s' * (hidden > 1)}"] if hidden else [])]


def _on_one_line(arguments: Mapping[str, Any], names: Mapping[str, str], redact: Redact) -> str:
    """Return the arguments as a call has them, if they are few and short; else nothing."""
    if any(isinstance(value, str) and "\n" in value for value in arguments.values()) or len(arguments) > MAX_LINES:
        return ""
    shown = [f"{names[name]}={brief_repr(arguments[name], ONE_LINE, redact)}" for name in names]
    text = ", ".join(shown) or "none"
    return text if len(text) <= ONE_LINE else ""


def _argument_name(name: str, declared: bool, redact: Redact) -> str:
    """Return a name as a call has it; one that only the program knows is quoted."""
    plain = declared and name.isascii() and name.isidentifier() and len(name) <= MAX_NAME
    return name if plain else quote_text(name, MAX_NAME, redact)


def _value_lines(value: Any, head: str, redact: Redact, most: int, depth: int = 0) -> Iterator[str]:
    """Yield *value* after *head*: on the same line where it is short, else below it, a step further in."""
    short = brief_repr(value, most, redact)
    nested = isinstance(value, Mapping | list | tuple) and len(cast("Sequence[Any]", value)) > 0
    if isinstance(value, str) and "\n" in value:
        yield f"{head} {_size(value)}"
        yield from _text_lines(value, redact)
    elif nested and len(short) > ONE_LINE // 2 and depth < MAX_DEPTH:
        yield head
        step = head[: len(head) - len(head.lstrip())] + "  "
        yield from islice(_part_lines(value, step, redact, depth), MAX_LINES)
        count = len(cast("Sequence[Any]", value))
        if count > MAX_LINES:
            yield f"{step}… {count:,} in all"
    else:
        yield f"{head} {short}"


def _part_lines(value: Any, step: str, redact: Redact, depth: int) -> Iterator[str]:
    """Yield the parts of a mapping under their names, and those of a list each behind a dash."""
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value).items()
        parts = [(f"{quote_text(str(name), ONE_LINE, redact)}:", part) for name, part in islice(named, MAX_LINES)]
    else:
        parts = [("-", part) for part in islice(cast("Sequence[Any]", value), MAX_LINES)]
    for head, part in parts:
        first, *rest = _value_lines(part, f"{step}{head}", redact, ONE_LINE, depth + 1)
        if rest and first == f"{step}-":
            first = f"{first} {rest.pop(0).lstrip()}"
        yield from (first, *rest)


def _size(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"{lines:,} line{'s' * (lines != 1)}, {len(text):,} characters"


def _text_lines(text: str, redact: Redact) -> list[str]:
    shown = brief_text(text.removesuffix("\n"), MAX_LINES * MAX_LINE, redact).split("\n")
    return _cut([f"| {line}" for line in shown])


def _difference(before: Any, after: Any, redact: Redact) -> list[str]:
    """Return the removed and the added lines."""
    if not isinstance(before, str) or not isinstance(after, str) or max(len(before), len(after)) > MAX_DIFFERENCE:
        return [f"    {brief_repr(before, MAX_VALUE, redact)}", f"    {brief_repr(after, MAX_VALUE, redact)}"]
    import difflib  # noqa: PLC0415 - few calls ask, and fewer show a difference

    if before.endswith("\n") and after.endswith("\n"):
        before, after = before[:-1], after[:-1]
    old, new = redact(before).split("\n"), redact(after).split("\n")
    found = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
    return _cut([line if line.startswith("@@") else f"{line[:1]} {line[1:]}" for line in found]) or ["    no change"]


def _cut(lines: Sequence[str]) -> list[str]:
    shown = [
        printable(line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}… ({len(line):,} characters)")
        for line in lines[:MAX_LINES]
    ]
    more = len(lines) - MAX_LINES
    return [f"    {line}" for line in shown] + ([f"    … {more:,} more lines"] if more > 0 else [])
