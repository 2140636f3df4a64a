"""Changes one entry of a JSON file as editors write it, and no other character: comments, order and spaces stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ot.config.clients.client_reading import read_json
from ot.config.clients.nested_values import nest, with_value, without
from ot.config.clients.server_entry import table

# None of these is tried a second way, so that no file takes long.
GAP = re.compile(r"\ufeff?(?:\s++|//[^\n]*+|/\*(?>.*?\*/))*+", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
SCALAR = re.compile(r"[^\s,}\]/]++")
BRACKET = re.compile(rf"{STRING.pattern}?+|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|[{{}}\[\]]", re.DOTALL)
REST_OF_LINE = re.compile(r"(?:[ \t]*+(?://[^\r\n]*+|/\*(?>[^\r\n]*?\*/)))*+")
END_OF_LINE = re.compile(r"[ \t]*+(?:\r?\n|\Z)")


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a key, its value and the comma behind it are; -1 where there is no comma."""

    key: str
    start: int
    value: int
    end: int
    comma: int


@dataclass(frozen=True, slots=True)
class _Span:
    """Where an object begins and ends, and what is in it."""

    open: int
    close: int
    members: tuple[_Member, ...]

    def member(self, key: str) -> int:
        """Return the number of the member that counts: of two with the same key the last; -1 when there is none."""
        return max((number for number, member in enumerate(self.members) if member.key == key), default=-1)


class JsonText:
    """The text of a JSON file with comments and final commas; every change gives a new one."""

    def __init__(self, text: str) -> None:
        """Read *text*, or raise ValueError if it holds no JSON object; a ``JSONDecodeError`` knows the line."""
        self.text = text
        self.data = read_json(text.encode())
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def line_of(self, path: Sequence[str]) -> int:
        """Return the line on which the last part of *path* that exists begins."""
        place = 0
        for step, span in self._way(path):
            number = span.member(step)
            place = span.members[number].start if number >= 0 else place
        return self.text.count("\n", 0, place) + 1

    def put(self, path: Sequence[str], value: Any, before: str = "") -> JsonText:
        """Return the text with *value* at *path*: in the place of the old one, else *before* a neighbour or behind all.

        Raises:
            ValueError: Something on the way to it is not an object.
        """
        if GAP.fullmatch(self.text):
            return self._new_object(nest(path, value))
        for depth, (step, span) in enumerate(self._way(path)):
            number = span.member(step)
            if number < 0:
                follower = span.member(before) if depth + 1 == len(path) else -1
                rest = nest(path[depth + 1 :], value)
                text = self._insert(span, step, rest) if follower < 0 else self._before(span, follower, step, rest)
                return self._check(text, path, value)
            member = span.members[number]
            if depth + 1 == len(path):
                written = self._render(value, self._indent_at(member.start), inline=self._is_inline(span))
                return self._check(self.text[: member.value] + written + self.text[member.end :], path, value)
        raise ValueError(f"'{'.'.join(path[:-1])}' is not an object")

    def remove(self, path: Sequence[str]) -> JsonText:
        """Return the text without the entry at *path*, and without the comma that this makes needless."""
        found = self
        while (span := found._parent(path)) and (number := span.member(path[-1])) >= 0:
            found = JsonText(found._without(span, number))
        if found.data != without(self.data, path):
            raise ValueError(f"'{'.'.join(path)}' cannot be taken out safely")
        return found

    # ---------------------------------------------------------------- finding

    def _way(self, path: Sequence[str]) -> list[tuple[str, _Span]]:
        """Return each step of *path* with the object that it is looked for in, as far as there are objects."""
        way: list[tuple[str, _Span]] = []
        at = _gap(self.text, 0)
        for step in path:
            if self.text[at : at + 1] != "{":
                break
            span = _span(self.text, at)
            way.append((step, span))
            number = span.member(step)
            if number < 0:
                break
            at = span.members[number].value
        return way

    def _parent(self, path: Sequence[str]) -> _Span | None:
        way = self._way(path)
        return way[-1][1] if len(way) == len(path) else None

    # ---------------------------------------------------------------- writing

    def _new_object(self, value: Any) -> JsonText:
        between = "" if not self.text.strip("\ufeff") or self.text.endswith("\n") else self._newline
        return JsonText(self.text + between + self._render(value, "", inline=False) + self._newline)

    def _insert(self, span: _Span, key: str, value: Any) -> str:
        text, inline = self.text, self._is_inline(span)
        if not span.members:
            base = self._indent_at(span.open)
            at = REST_OF_LINE.match(text, span.open + 1).end()  # pyright: ignore[reportOptionalMemberAccess] - it matches nothing too
            end = "" if "\n" in text[at : span.close] else self._newline + base
            return text[:at] + self._newline + self._member(key, value, base + self._unit()) + end + text[at:]
        last = span.members[-1]
        behind = last.end if last.comma < 0 else last.comma + 1
        at = behind if inline else REST_OF_LINE.match(text, behind).end()  # pyright: ignore[reportOptionalMemberAccess]
        indent = self._indent_at(last.start)
        new = self._member(key, value, " ", inline=True) if inline else self._newline + self._member(key, value, indent)
        first, final = (",", "") if last.comma < 0 else ("", ",")
        return text[:behind] + first + text[behind:at] + new + final + text[at:]

    def _before(self, span: _Span, follower: int, key: str, value: Any) -> str:
        start, inline = span.members[follower].start, self._is_inline(span)
        indent = "" if inline else self._indent_at(start)
        new = self._member(key, value, indent, inline=inline).removeprefix(indent)
        return f"{self.text[:start]}{new},{' ' if inline else self._newline + indent}{self.text[start:]}"

    def _member(self, key: str, value: Any, indent: str, *, inline: bool = False) -> str:
        return f"{indent}{json.dumps(key, ensure_ascii=False)}: {self._render(value, indent, inline=inline)}"

    def _render(self, value: Any, indent: str, *, inline: bool) -> str:
        if inline:
            return json.dumps(value, ensure_ascii=False)
        if not isinstance(value, dict) or not value:
            return json.dumps(value, ensure_ascii=False)
        inner = indent + self._unit()
        members = [self._member(key, item, inner) for key, item in table(value).items()]
        return f"{{{self._newline}{f',{self._newline}'.join(members)}{self._newline}{indent}}}"

    def _without(self, span: _Span, number: int) -> str:
        text, member = self.text, span.members[number]
        end = member.comma + 1 if member.comma >= 0 else member.end
        ends_line = END_OF_LINE.match(text, end)
        start = member.start
        while text[start - 1] in " \t":
            start -= 1
        if ends_line and text[start - 1] == "\n":
            # Only then: what follows in the same line could end up in a comment.
            start -= 2 if text[start - 2] == "\r" else 1
        before, after = text[:start], text[member.end : end].removesuffix(",") + text[end:]
        is_last = number == len(span.members) - 1
        if number and is_last and member.comma < 0:
            comma = span.members[number - 1].comma
            before = before[:comma] + before[comma + 1 :]
        return before + after

    def _check(self, text: str, path: Sequence[str], value: Any) -> JsonText:
        """Return *text*, if it says what is wanted and nothing else has changed."""
        new = JsonText(text)
        if new.data != with_value(self.data, path, value):
            raise ValueError(f"'{'.'.join(path)}' cannot be changed there safely")
        return new

    # ---------------------------------------------------------------- how the file is written

    def _is_inline(self, span: _Span) -> bool:
        return bool(span.members) and "\n" not in self.text[span.open : span.close]

    def _indent_at(self, place: int) -> str:
        start = self.text.rfind("\n", 0, place) + 1
        line = self.text[start:place].lstrip("\ufeff")
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _unit(self) -> str:
        """Return one step of indentation, as the outermost object has it."""
        root = _span(self.text, at) if self.text[(at := _gap(self.text, 0)) : at + 1] == "{" else None
        first = root.members[0].start if root and root.members and not self._is_inline(root) else 0
        base = self._indent_at(root.open) if root else ""
        return self._indent_at(first).removeprefix(base) or "  "


# ---------------------------------------------------------------- reading well-formed text


def _gap(text: str, at: int) -> int:
    """Return the end of the blanks and comments that begin at *at*."""
    found = GAP.match(text, at)
    return found.end() if found else at


def _string_end(text: str, at: int) -> int:
    found = STRING.match(text, at)
    if not found:
        raise ValueError("a key is not in double quotes")
    return found.end()


def _value_end(text: str, at: int) -> int:
    if text[at] == '"':
        return _string_end(text, at)
    if text[at] not in "{[":
        found = SCALAR.match(text, at)
        return found.end() if found else at
    depth = 0
    for found in BRACKET.finditer(text, at):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise ValueError("an object is not closed")


def _span(text: str, at: int) -> _Span:
    """Return the object that begins at *at*, in a text that has been read before."""
    members: list[_Member] = []
    place = _gap(text, at + 1)
    while text[place] != "}":
        key_end = _string_end(text, place)
        value = _gap(text, _gap(text, key_end) + 1)
        end = _value_end(text, value)
        after = _gap(text, end)
        comma = after if text[after] == "," else -1
        members.append(_Member(json.loads(text[place:key_end], strict=False), place, value, end, comma))
        place = _gap(text, after + 1) if comma >= 0 else after
    return _Span(at, place, tuple(members))
