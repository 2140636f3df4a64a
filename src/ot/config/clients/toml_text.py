"""Changes one table of a TOML file, and no other character: comments, order and spaces stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ot.config.clients.nested_values import with_value, without
from ot.config.clients.server_entry import table

BARE = re.compile(r"[A-Za-z0-9_-]+")
# What a statement consists of; none of these is tried a second way, so that no file takes long.
PIECE = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"(?!""))*+"{3,5})'
    r"|'''(?>(?:[^']|'(?!''))*+'{3,5})"
    r'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[\[{]|[\]}]|\n|[^"\'#\[\]{}\n]++',
    re.DOTALL,
)


ASSIGNED_KEY = re.compile(r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|[^"'=])*+(?==)""")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header or an assignment: where it is, to the end of its line, and the key that it is about."""

    start: int
    end: int
    path: tuple[str, ...]
    is_header: bool


class TomlText:
    """The text of a TOML file; every change gives a new one."""

    def __init__(self, text: str) -> None:
        """Read *text*, or raise ValueError if it is malformed; the message names the line."""
        self.text = text
        self.data: dict[str, Any] = tomllib.loads(text.removeprefix("\ufeff"))
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def line_of(self, path: Sequence[str]) -> int:
        """Return the line on which the longest part of *path* that exists begins."""
        for length in range(len(path), 0, -1):
            for statement in self._about(path[:length]):
                return self.text.count("\n", 0, statement.start) + 1
        return 1

    def put(self, path: Sequence[str], value: Any, before: str = "") -> TomlText:
        """Return the text with *value* at *path*; a table that is new goes *before* a neighbour, or to the end.

        Raises:
            ValueError: The file is written in a way that leaves no place for it.
        """
        found = [item for item in self._about(path) if item.path == tuple(path) and not item.is_header]
        if found:
            text = self._replace(found[0], path[-1], value)
        elif isinstance(value, dict):
            about = self._about((*path[:-1], before)) if before else []
            if about and about[0].is_header:
                text = self._at(about[0].start, path, value)
            else:
                text = self.remove(path)._append(path, table(value))
        else:
            text = self._in_table(path, value)
        return self._check(text, with_value(self.data, path, value), path)

    def remove(self, path: Sequence[str]) -> TomlText:
        """Return the text without the table at *path*, and without the tables in it; comments stay."""
        text = self.text
        for statement in reversed(self._about(path)):
            start = statement.start
            if statement.is_header and text[:start].endswith(2 * self._newline):
                start -= len(self._newline)  # the empty line that sets a table off
            text = text[:start] + text[statement.end :]
        return self._check(text, without(self.data, path), path)

    # ---------------------------------------------------------------- writing

    def _at(self, place: int, path: Sequence[str], value: Any) -> str:
        lines = self._lines_of(path, table(value))
        return self.text[:place] + "".join(f"{line}{self._newline}" for line in (*lines, "")) + self.text[place:]

    def _lines_of(self, path: Sequence[str], value: dict[str, Any]) -> list[str]:
        return [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_value(item)}" for key, item in value.items())]

    def _append(self, path: Sequence[str], value: dict[str, Any]) -> str:
        lines, text = self._lines_of(path, value), self.text
        between = "" if not text.strip("\ufeff") else self._newline * (1 if text.endswith("\n") else 2)
        return text + between + self._newline.join(lines) + self._newline

    def _replace(self, statement: _Statement, key: str, value: Any) -> str:
        old = self.text[statement.start : statement.end]
        indent = old[: len(old) - len(old.lstrip())]
        line = old.rstrip("\r\n")
        *_, last = PIECE.finditer(line)
        comment = f"  {last[0]}" if last[0].startswith("#") else ""
        new = f"{indent}{_key(key)} = {_value(value)}{comment}{old[len(line) :]}"
        return self.text[: statement.start] + new + self.text[statement.end :]

    def _in_table(self, path: Sequence[str], value: Any) -> str:
        """Return the text with one more assignment, behind the last of its table."""
        about = self._about(path[:-1])
        of_table = [item for item in about if len(item.path) == len(path) - item.is_header]
        if not any(item.is_header for item in of_table):
            raise ValueError(f"'{'.'.join(path[:-1])}' is not a table of its own")
        at = of_table[-1].end
        between = "" if self.text[:at].endswith("\n") else self._newline
        return self.text[:at] + f"{between}{_key(path[-1])} = {_value(value)}{self._newline}" + self.text[at:]

    def _check(self, text: str, wanted: dict[str, Any], path: Sequence[str]) -> TomlText:
        """Return *text*, if it says what is wanted and nothing else has changed."""
        try:
            new = TomlText(text)
        except ValueError:
            new = None
        if new is None or _bare(new.data) != _bare(wanted):
            raise ValueError(f"'{'.'.join(path)}' cannot be changed there safely")
        return new

    # ---------------------------------------------------------------- finding

    def _about(self, path: Sequence[str]) -> list[_Statement]:
        return [item for item in self._statements() if item.path[: len(path)] == tuple(path)]

    def _statements(self) -> Iterator[_Statement]:
        """Yield the headers and assignments; blank lines and comments are none."""
        within: tuple[str, ...] = ()
        for start, end in _lines(self.text):
            text = self.text[start:end].strip("\ufeff \t\r\n")
            if not text or text.startswith("#"):
                continue
            if text.startswith("["):
                within = _path(text)
                yield _Statement(start, end, within, is_header=True)
            else:
                key = ASSIGNED_KEY.match(text)
                yield _Statement(start, end, within + _path(f"{key[0] if key else text}= 0"), is_header=False)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each line begins and ends; a value of several lines is one."""
    start, depth = int(text.startswith("\ufeff")), 0
    for piece in PIECE.finditer(text):
        depth += (piece[0] in "[{") - (piece[0] in "]}")
        if piece[0] == "\n" and depth == 0:
            yield start, piece.end()
            start = piece.end()
    if start < len(text):
        yield start, len(text)


def _path(statement: str) -> tuple[str, ...]:
    """Return the key that a single header, or an assignment of 0, names."""
    path: tuple[str, ...] = ()
    value: Any = tomllib.loads(statement)
    while isinstance(value, dict) and (entries := table(value)):
        ((key, value),) = entries.items()
        path += (key,)
    return path


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    """Return *value* as TOML writes it: for texts, numbers, lists and objects that is JSON but for the braces."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in table(value).items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
    if not isinstance(value, str | int | float):
        raise ValueError("a value is neither text nor number, list or table")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _bare(data: dict[str, Any]) -> dict[str, Any]:
    """Return *data* without tables that hold nothing: a header alone, or none, says the same."""
    pairs = {key: _bare(table(value)) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in pairs.items() if value != {}}
