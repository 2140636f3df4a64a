"""What a repository says, as a person is shown it: whole, with nothing that hides a part or steers a terminal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ot.visible_text import printable

BLANKS = re.compile(r"[\s\u115f\u1160\u2800\u3164\uffa0]{9,}")
"""Long runs of what looks like nothing push the rest out of sight; some of it counts as letters."""


def shown(text: str) -> str:
    """Return *text* on one line, whole; long runs of blanks are counted instead."""
    return printable(BLANKS.sub(_counted, text))


def leaves(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield every text in *value*, plain data, under its path of keys."""
    below: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        below = [(str(key), entry) for key, entry in cast("Mapping[Any, Any]", value).items()]
    elif isinstance(value, list | tuple):
        below = [(str(number), entry) for number, entry in enumerate(cast("list[Any]", value))]
    for key, entry in below:
        yield from leaves(entry, (*above, key))
    if above and not below:
        yield ".".join(above), _text(value)


def server_words(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return a server's settings by name, what would be started or reached first."""
    args = entry.get("args")
    words = [entry.get("command"), *(cast("list[Any]", args) if isinstance(args, list | tuple) else [])]
    line = shlex.join(str(word) for word in words if word is not None)
    first = {"runs": line} if line else {}
    return first | dict(leaves({key: value for key, value in entry.items() if key not in ("command", "args")}))


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: ""}[value]
    return str(value) if not isinstance(value, Mapping | list | tuple) else ""


def _counted(blanks: re.Match[str]) -> str:
    lines = blanks[0].count("\n")
    return f"[{len(blanks[0])} blanks{f', {lines} line ends' if lines else ''}]"
