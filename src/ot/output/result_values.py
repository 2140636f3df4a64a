"""Parts of a stored JSON value, by path: the value itself, or what it is made of.

A path is written as ``a.b[0]``, ``rows[0:10].name`` or ``["odd key"]``.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ot.nearest_names import nearest_names
from ot.output.json_places import JsonPlaces
from ot.output.json_reader import NotJson, TooFar, TooSlow
from ot.output.result_blobs import Form
from ot.output.result_lines import LineReader
from ot_sdk import tagged

MOST_NAMES = 1000
"""Keys that are looked at to say which are like the one that is missing."""
SHOWN_KEYS = 50
LOOKED_AT = 100
"""Elements of a list whose types are told."""
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
SCALARS = {'"': "str", "t": "bool", "f": "bool", "n": "None"}


type Step = str | int | slice[Any, Any, Any]
"""A key of a dict; the number of an element, from the end when negative; or some elements, what follows of each."""


@contextmanager
def plain_errors() -> Generator[None]:
    """Turn what is wrong with a text into errors of types that a program knows."""
    try:
        yield
    except (NotJson, TooSlow, TooFar) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("the stored value is nested too deeply: read it by lines") from None


class ResultValues:
    """Reads parts of one stored result."""

    def __init__(self, lines: LineReader, form: Form) -> None:
        """Look into the content of *lines*, which is of *form*."""
        self._places = JsonPlaces(lines, form)
        self._form = form
        self._room = 0

    def value(self, path: str, max_bytes: int) -> Any:
        """Return the value at *path*, as plain data of at most *max_bytes* of JSON.

        Raises:
            ValueError: The path is malformed, the text is not JSON, or it is larger; the text says how to go on.
            LookupError: There is nothing; the text says what there is.
        """
        self._room = max_bytes
        try:
            return self._value(self._places.root, parse_path(path), path=".")
        except _TooLarge as large:
            words = f"the value at path '{large.path}' is larger than {max_bytes:,} bytes, all that a program may hold"
            raise ValueError(f"{words}: it is {self._words(large.at)}; {self._advice(large.at, large.path)}") from None

    def outline(self, path: str) -> dict[str, Any]:
        """Return type, length and keys of what *path* leads to, and the path that goes on; raises as *value* does."""
        steps = parse_path(path)
        if any(isinstance(step, slice) for step in steps):
            raise ValueError("an outline shows one value: give a path without a slice")
        at, here = self._places.root, "."
        for step in steps:
            at, here = self._step(at, step, here), join(here, step)
        return {"path": here, **self._outline(at), "next": self._advice(at, here)}

    # ---------------------------------------------------------------- the way to a value

    def _value(self, at: int, steps: tuple[Step, ...], path: str) -> Any:
        if not steps:
            return self._decode(at, path)
        step, rest = steps[0], steps[1:]
        if not isinstance(step, slice):
            return self._value(self._step(at, step, path), rest, join(path, step))
        kind, listed = self._places.container(at)
        if kind != "list":
            raise self._wrong_kind(at, path, "a slice")
        first, last = self._bounds(step, listed)
        return [self._value(place, rest, join(path, step)) for place in self._places.items(listed, first, last)]

    def _step(self, at: int, step: Step, path: str) -> int:
        kind, listed = self._places.container(at)
        if isinstance(step, str) and kind in ("dict", "pairs"):
            place = self._places.entry(kind, listed, step)
            if place is None:
                raise self._missing(kind, listed, step, path)
            return place
        # A key may be a number, as in ``rows.0``.
        number = int(step) if isinstance(step, str) and step.isdecimal() and len(step) < 19 else step
        if kind != "list" or not isinstance(number, int):
            raise self._wrong_kind(at, path, "a key" if isinstance(step, str) else "a number")
        return self._element(listed, number, path)

    def _element(self, listed: int, number: int, path: str) -> int:
        wanted = number if number >= 0 else number + self._places.length("list", listed)
        place = next(self._places.items(listed, wanted, wanted + 1), None) if wanted >= 0 else None
        if place is None:
            length = self._places.length("list", listed)
            raise IndexError(f"path '{path}' is a list of {length:,} items: there is no item {number}")
        return place

    def _bounds(self, part: slice[Any, Any, Any], listed: int) -> tuple[int, int | None]:
        if (part.start or 0) >= 0 and (part.stop is None or part.stop >= 0):
            return part.start or 0, part.stop
        first, last, _ = part.indices(self._places.length("list", listed))
        return first, max(first, last)

    def _decode(self, at: int, path: str) -> Any:
        try:
            end = self._end(at)
        except TooFar:
            raise _TooLarge(at, path) from None
        self._room -= end - at
        if at == self._places.root and self._places.is_of_documents:
            return [self._plain(place, self._places.reader.end_of(place)) for place in self._places.items(at)]
        return self._plain(at, end)

    def _end(self, at: int) -> int:
        reader = self._places.reader
        if at != self._places.root:
            return reader.end_within(at, self._room)
        # The root's end is known, whatever it holds.
        if reader.size - max(at, 0) > self._room:
            raise TooFar
        return reader.size

    def _plain(self, at: int, end: int) -> Any:
        value = self._places.reader.value(at, end)
        return tagged.decode(value) if self._form == "tagged" else value

    # ---------------------------------------------------------------- what there is

    def _missing(self, kind: str, listed: int, name: str, path: str) -> KeyError:
        names = [str(key) for key, _ in islice(self._places.entries(kind, listed), MOST_NAMES)]
        shown = nearest_names(name, names)
        more = self._places.count(kind, listed)[0] - len(shown)
        others = f" and {more:,} more" if more > 0 else ""
        return KeyError(f"path '{path}' has no key {name!r}; there are: {', '.join(shown) or 'none'}{others}")

    def _wrong_kind(self, at: int, path: str, wanted: str) -> LookupError:
        return LookupError(f"path '{path}' is {self._words(at)}, which has no place for {wanted}")

    def _words(self, at: int) -> str:
        kind, listed = self._places.container(at)
        if not kind:
            return f"a value of type {self._type(at)}"
        count, is_all = self._places.count(kind, listed)
        words = f"{count:,} items" if kind == "list" else f"{count:,} keys"
        return f"a {'list' if kind == 'list' else 'dict'} of {words}{'' if is_all else ' and more'}"

    def _advice(self, at: int, path: str) -> str:
        kind, listed = self._places.container(at)
        if kind == "list":
            return f"read on with path='{join(path, slice(0, 10))}'"
        key = self._telling_key(kind, listed) if kind else None
        if key is None:
            return "read it by lines, with offset, limit, search or from_byte"
        return f'read on with path="{join(path, key)}"'

    def _telling_key(self, kind: str, listed: int) -> str | None:
        """Return the first key that holds more than one value, else the first one."""
        first: str | None = None
        for key, place in islice(self._places.entries(kind, listed), SHOWN_KEYS):
            if self._places.container(place)[0]:
                return str(key)
            first = str(key) if first is None else first
        return first

    def _outline(self, at: int) -> dict[str, Any]:
        kind, listed = self._places.container(at)
        if kind == "list":
            return self._outline_list(listed)
        if kind:
            return self._outline_dict(kind, listed)
        return {"type": self._type(at), "size_bytes": self._places.reader.end_of(at) - at}

    def _outline_list(self, listed: int) -> dict[str, Any]:
        looked_at = list(self._places.items(listed, 0, LOOKED_AT))
        outline: dict[str, Any] = {
            "type": "list",
            **self._length("list", listed),
            "items": " or ".join(sorted({self._type(place) for place in looked_at})) or "none",
        }
        first = self._places.container(looked_at[0]) if looked_at else ("", 0)
        if first[0] in ("dict", "pairs"):
            outline["keys_of_first"] = [str(key) for key, _ in islice(self._places.entries(*first), SHOWN_KEYS)]
        return outline

    def _outline_dict(self, kind: str, listed: int) -> dict[str, Any]:
        keys = {str(key): self._type(place) for key, place in islice(self._places.entries(kind, listed), SHOWN_KEYS)}
        length = self._length(kind, listed)
        more = {"more_keys": length["length"] - len(keys)} if length["length"] > len(keys) else {}
        return {"type": "dict", **length, "keys": keys, **more}

    def _length(self, kind: str, listed: int) -> dict[str, Any]:
        count, is_all = self._places.count(kind, listed)
        return {"length": count} | ({} if is_all else {"note": "there are more than could be counted in time"})

    def _type(self, at: int) -> str:
        kind, _ = self._places.container(at)
        if kind:
            return "list" if kind == "list" else "dict"
        first = self._places.reader.kind(at)
        if first in SCALARS:
            return SCALARS[first]
        return type(self._plain(at, self._places.reader.end_of(at))).__name__


class _TooLarge(Exception):
    def __init__(self, at: int, path: str) -> None:
        super().__init__(at, path)
        self.at = at
        self.path = path


# ---------------------------------------------------------------- paths


def parse_path(path: object) -> tuple[Step, ...]:
    """Return the steps of *path*.

    Raises:
        TypeError, ValueError: The path is malformed; the text says how to write one.
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
    if isinstance(step, str):
        if re.fullmatch(r"[^.\[\]'\"\s$][^.\[\]'\"\s]*", step):
            return f"{path}.{step}".removeprefix(".")
        quoted = step.replace("\\", "\\\\").replace("'", "\\'")
        return f"{path}['{quoted}']"
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}[{'' if step.start is None else step.start}:{'' if step.stop is None else step.stop}]"


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    if found["first"] is not None:
        return slice(_number(found["first"]), _number(found["last"]))
    if found["name"] is not None:
        return found["name"]
    quoted = found["single"] if found["single"] is not None else found["double"]
    return re.sub(r"\\(.)", r"\1", quoted)


def _number(text: str) -> int | None:
    return None if text in ("", "-") else int(text)
