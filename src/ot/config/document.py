"""YAML text as nodes that know their file and line; nothing in the text can make an object."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import yaml

from ot.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one file may hold."""

    size: int = MAX_BYTES
    nodes: int = MAX_NODES
    depth: int = MAX_DEPTH


OF_SETTINGS = Bounds()
type Scalar = str | int | float | bool | None

# Named one by one, because the class of all that is text takes 9 ms to compile.
NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|\ufffe|\uffff")
# libyaml needs quadratic time for many of them, and no configuration does.
DIRECTIVE = re.compile(r"^%", re.MULTILINE)

# YAML 1.2's core: in 1.1 a plain `no`, `12:30` or `2026-01-01` would not be the text that the user reads.
INTEGER = re.compile(r"[-+]?[0-9]{1,30}|0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,5})?")
WORDS: Mapping[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", "+.inf", ".Inf", "+.Inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


@dataclass(frozen=True, slots=True)
class Location:
    """Where something is written; line 0 means the file as a whole."""

    file: Path
    line: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it is written: a mapping's entry knows the line of its key."""

    place: Location
    value: Scalar | tuple[Node, ...] | Mapping[str, Node]
    text: str = ""

    @property
    def entries(self) -> Mapping[str, Node]:
        """The entries of a mapping; of anything else, none."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def items(self) -> tuple[Node, ...]:
        """The items of a list; of anything else, none."""
        return self.value if isinstance(self.value, tuple) else ()

    def get(self, *path: str) -> Node | None:
        """Return the node at *path* of keys, or nothing."""
        found: Node | None = self
        for key in path:
            found = found.entries.get(key) if found else None
        return found

    def at(self, *path: str) -> Node:
        """Return the node at *path* of keys, or an empty one."""
        return self.get(*path) or Node(self.place, None)

    def put(self, path: tuple[str, ...], value: Node) -> Node:
        """Return it with *value* at *path* of keys."""
        if not path:
            return value
        return Node(self.place, {**self.entries, path[0]: self.at(path[0]).put(path[1:], value)})

    def map_entries(self, change: Callable[[str, Node], Node]) -> Node:
        """Return it with every entry of a mapping changed; anything else stays as it is."""
        return (
            Node(self.place, {key: change(key, node) for key, node in self.entries.items()}) if self.entries else self
        )

    def find(self, path: tuple[str | int, ...]) -> Node:
        """Return the node at *path*, or the last one on the way there that exists."""
        if not path:
            return self
        step, rest = path[0], path[1:]
        if isinstance(step, int):
            return self.items[step].find(rest) if 0 <= step < len(self.items) else self
        return self.entries[step].find(rest) if step in self.entries else self

    def plain(self) -> Any:
        """Return the value without places: dicts, lists and scalars."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value


def node_of(value: Any, place: Location) -> Node:
    """Return plain data as a node that stands at *place*."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        return Node(place, {str(key): node_of(entry, place) for key, entry in entries})
    if isinstance(value, list | tuple):
        return Node(place, tuple(node_of(item, place) for item in cast("list[Any]", value)))
    return Node(place, value, str(value))


def parse(data: bytes, file: Path, bounds: Bounds = OF_SETTINGS) -> Node:
    """Return the mapping that *data* holds; a file of comments alone is an empty one.

    Raises:
        ConfigError: The file is not one plain YAML mapping.
    """
    text = _decode(data, file, bounds)
    return _Builder(text, file, bounds).document()


def too_large(file: Path, line: int | None = None, size: int = MAX_BYTES) -> ConfigError:
    """Return the error for a file above the *size* that is read; *line* is where that size is reached."""
    return ConfigError(f"the file is larger than {size:,} bytes, the most that is read", file=file, line=line)


def scalar(text: str) -> Scalar:
    """Return the value that an unquoted *text* stands for."""
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        # A leading zero is no octal mark in YAML 1.2, but int(text, 0) would refuse it.
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    return float(text) if NUMBER.fullmatch(text) else text


def _decode(data: bytes, file: Path, bounds: Bounds) -> str:
    if len(data) > bounds.size:
        raise too_large(file, data.count(b"\n", 0, bounds.size) + 1, bounds.size)
    if not data.strip():
        # An editor that saves truncates first: taken for a configuration it would lift every restriction.
        hint = "write 'version: 1', or remove the file" if bounds is OF_SETTINGS else ""
        raise ConfigError("the file is empty", file=file, line=1, hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("the file is not UTF-8 text", file=file, line=line) from None
    _refuse_match(NOT_TEXT, text, file, "the control character {!a} is not allowed here")
    _refuse_match(DIRECTIVE, text, file, "YAML directives ({}) are not used here")
    return text


def _refuse_match(pattern: re.Pattern[str], text: str, file: Path, message: str) -> None:
    if found := pattern.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ConfigError(message.format(found.group()), file=file, line=line)


class _Builder:
    """Turns the events of one document into nodes, and gives up early on what no configuration needs."""

    def __init__(self, text: str, file: Path, bounds: Bounds) -> None:
        self._text = text
        self._bounds = bounds
        self._file = file
        self._line_starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)  # pyright: ignore[reportUnknownMemberType] - its stub says nothing
        self._nodes = 0

    def document(self) -> Node:
        try:
            return self._document()
        except yaml.MarkedYAMLError as error:
            mark: Any = error.problem_mark or error.context_mark
            raise self._error(self._words(error, mark.index), mark.index) from None

    def _document(self) -> Node:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return Node(Location(self._file), {})
        first = next(self._events)
        root = self._node(first, 1)
        next(self._events)  # the document's end
        if not isinstance(after := next(self._events), yaml.StreamEndEvent):
            raise self._error("a second document starts here; a file may contain only one", after.start_mark.index)
        if not isinstance(root.value, Mapping):
            raise self._error("the file must contain keys and values, such as 'version: 1'", first.start_mark.index)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        self._refuse(event, depth)
        place = self._place(event)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(place, self._mapping(depth))
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(place, self._sequence(depth))
        text: str = event.value
        return Node(place, text if event.style else scalar(text), text)

    def _mapping(self, depth: int) -> Mapping[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, place = self._key(event, depth), self._place(event)
            if key in entries:
                raise self._error(f"'{key}' is given twice, first in line {entries[key].place.line}", _index(event))
            value = self._node(next(self._events), depth + 1)
            entries[key] = Node(place, value.value, value.text)
        return entries

    def _key(self, event: Any, depth: int) -> str:
        self._refuse(event, depth)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error("a key must be text", _index(event))
        return str(event.value)

    def _sequence(self, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return tuple(items)

    def _refuse(self, event: Any, depth: int) -> None:
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._error("anchors and aliases (&, *) are not used here: write the value out", _index(event))
        if event.tag is not None:
            raise self._error(f"the tag {event.tag[:60]!a} is not used here", _index(event))
        if self._nodes > self._bounds.nodes:
            raise self._error(f"the file contains more than {self._bounds.nodes:,} values", _index(event))
        if depth > self._bounds.depth:
            raise self._error(f"values are nested more than {self._bounds.depth} deep", _index(event))

    def _words(self, error: yaml.MarkedYAMLError, index: int) -> str:
        if self._text[index : index + 1] == "\t":
            return "a tab is not allowed here: indent with spaces"
        return f"not valid YAML: {error.problem or error.context}"

    def _place(self, event: Any) -> Location:
        return Location(self._file, self._line(_index(event)))

    def _line(self, index: int) -> int:
        return bisect_right(self._line_starts, index)

    def _error(self, message: str, index: int) -> ConfigError:
        return ConfigError(message, file=self._file, line=self._line(index))


def _index(event: Any) -> int:
    # The mark's own line also counts U+2028 and its kin, which no editor does.
    return event.start_mark.index
