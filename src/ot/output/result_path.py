"""Paths into a stored value: ``a.b[0]``, ``rows[0:10].name``, ``["odd key"]``."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_PATH_LENGTH = 1000
HOW = "write it as items[0:10], a.b[3].name or a['odd key']; '.' alone is the whole value"
_STEP = re.compile(
    r"""\.?(?:
        \[(?P<index>-?\d{1,18})\]
      | \[(?P<first>-?\d{0,18}):(?P<last>-?\d{0,18})\]
      | \['(?P<single>(?:[^'\\]|\\.)*)'\]
      | \["(?P<double>(?:[^"\\]|\\.)*)"\]
    ) | (?:^|\.)(?P<name>[^.\[\]]+)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a dict."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """One element of a list, from its end when negative."""

    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """Some elements of a list, as a slice names them; what follows is asked of each."""

    first: int | None
    last: int | None


Step = Key | Index | Part


def parse_path(path: object) -> tuple[Step, ...]:
    """Return the steps of *path*.

    Raises:
        TypeError, ValueError: It is no path; the text says how to write one.
    """
    if not isinstance(path, str):
        raise TypeError(f"path must be text, got {type(path).__name__}")
    if len(path) > MAX_PATH_LENGTH:
        raise ValueError(f"path is too long: at most {MAX_PATH_LENGTH} characters, got {len(path)}")
    # As JSONPath writes the whole; a key may begin so, too: "$ref".
    text = path[1:] if path == "$" or path.startswith(("$.", "$[")) else path
    steps: list[Step] = []
    place = 0
    while place < len(text) and text != ".":
        found = _STEP.match(text, place)
        if found is None:
            raise ValueError(f"path cannot be read at {text[place : place + 20]!r}: {HOW}")
        steps.append(_step(found))
        place = found.end()
    return tuple(steps)


def join(path: str, step: Step) -> str:
    """Return *path* with one more step."""
    path = "" if path == "." else path
    if isinstance(step, Key):
        plain = re.fullmatch(r"[^.\[\]'\"\s$][^.\[\]'\"\s]*", step.name)
        return f"{path}.{step.name}".removeprefix(".") if plain else f"{path}[{_quoted(step.name)}]"
    if isinstance(step, Index):
        return f"{path}[{step.number}]"
    return f"{path}[{'' if step.first is None else step.first}:{'' if step.last is None else step.last}]"


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return Index(int(found["index"]))
    if found["first"] is not None:
        return Part(_number(found["first"]), _number(found["last"]))
    if found["name"] is not None:
        return Key(found["name"])
    quoted = found["single"] if found["single"] is not None else found["double"]
    return Key(re.sub(r"\\(.)", r"\1", quoted))


def _number(text: str) -> int | None:
    return None if text in ("", "-") else int(text)


def _quoted(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
