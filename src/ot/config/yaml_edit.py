"""YamlText: a user's YAML file of which single keys are changed, and every other character stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import yaml

from ot.config.document import Node, parse, scalar
from ot.errors import ConfigError

COMMENT = re.compile(r"(?:^|\s)#", re.MULTILINE)
PLAIN = re.compile(r"(?:-{1,2}[A-Za-z]|[A-Za-z_/.])[\w./@+*=-]*", re.ASCII)
OLD_WORDS = frozenset({"y", "n", "yes", "no", "on", "off"})
"""Text to us, but true or false to older readers."""

# JSON leaves these as they are, and a YAML file may not hold them.
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
WIDTH = 100

type Keys = tuple[str, ...]


@dataclass(frozen=True)
class YamlText:
    """The text of one configuration file.

    An edit is a cut in the text, and is taken only when the new text reads as the old one with that one change.
    """

    text: str
    file: Path

    @cached_property
    def _root(self) -> Node:
        return parse(self.text.encode("utf-8", "surrogatepass"), self.file)

    @property
    def plain(self) -> dict[str, Any]:
        """The values in it, a copy of their own.

        Raises:
            ConfigError: The file is not one plain YAML mapping.
        """
        return self._root.plain()

    def get(self, *path: str) -> Any:
        """Return the value at *path*, or nothing."""
        return self._root.at(*path).plain()

    def put(self, path: Keys, value: Any) -> YamlText:
        """Return it with *value* at *path*; what was there is replaced if it stands on one line.

        Raises:
            ConfigError: The file is written in a way that cannot be changed without harm.
        """
        wanted = _put(self.plain, path, value)
        return self._first(self._ways_to_put(path, value), wanted, block(path[0], _put(None, path[1:], value)))

    def remove(self, path: Keys) -> YamlText:
        """Return it without the key at *path*, and without the comments inside of what is removed.

        Raises:
            ConfigError: As for ``put``.
        """
        left = {key: value for key, value in self.get(*path[:-1]).items() if key != path[-1]}
        wanted = _put(self.plain, path[:-1], left)
        # A section that lost its last entry is a key without a value, which means no more than no section.
        emptied = wanted if left or len(path) == 1 else _put(self.plain, path[:-1], None)
        return self._first(self._ways_to_remove(path), wanted, [f"remove {'.'.join(path)}"], emptied)

    def rename(self, path: Keys, name: str) -> YamlText:
        """Return it with the key at *path* called *name*; its value and the comments in it stay as they are.

        Raises:
            ConfigError: As for ``put``.
        """
        entries: dict[str, Any] = self.get(*path[:-1])
        wanted = _put(self.plain, path[:-1], {name if key == path[-1] else key: entries[key] for key in entries})
        key = _Nodes(self.text).key(path)
        text = f"{self.text[: key.start_mark.index]}{flow(name)}{self.text[key.end_mark.index :]}"
        return self._first(iter([text]), wanted, [f"rename {'.'.join(path)} to {name}"])

    def add_item(self, path: Keys, item: str) -> YamlText:
        """Return it with *item* at the end of the list at *path*; raise ConfigError as ``put`` does."""
        items = [*(self.get(*path) or ()), item]
        node = _Nodes(self.text).value(path)
        if not isinstance(node, yaml.SequenceNode) or node.flow_style or not node.value:
            return self.put(path, items)
        wanted = _put(self.plain, path, items)
        dash = self._indent(node.value[0].start_mark.index)
        added = self._insert_after(_end(node), [f"{dash}- {flow(item)}"])
        return self._first(iter([added]), wanted, [f"add {item} to {'.'.join(path)}"])

    def remove_item(self, path: Keys, item: str) -> YamlText:
        """Return it without *item* in the list at *path*; raise ConfigError as ``put`` does."""
        found: list[Any] = self.get(*path) or []
        if item not in found:
            return self
        left = [other for other in found if other != item]
        node = _Nodes(self.text).value(path)
        if not isinstance(node, yaml.SequenceNode) or node.flow_style:
            return self.put(path, left)
        wanted = _put(self.plain, path, left)
        text = self.text
        for entry in reversed([entry for entry, value in zip(node.value, found, strict=True) if value == item]):
            text = _without_lines(text, entry.start_mark.index, _end(entry))
        if not left:
            colon = _Nodes(text).colon(path)
            text = f"{text[:colon]} []{text[colon:]}"
        return self._first(iter([text]), wanted, [f"remove {item} from {'.'.join(path)}"])

    # ---------------------------------------------------------------- the ways to write one change

    def _ways_to_put(self, path: Keys, value: Any) -> Iterator[str]:
        nodes = _Nodes(self.text)
        depth = nodes.depth(path)
        if depth == len(path):
            yield from self._ways_to_replace(nodes, path, value)
            return
        rest = _put(None, path[depth + 1 :], value)
        above, key = nodes.value(path[:depth]), path[depth]
        if isinstance(above, yaml.MappingNode) and not above.flow_style:
            yield from self._ways_to_insert(above, key, rest, at_top=depth == 0)
        elif depth == 0:
            yield self._at_the_end(block(key, rest))
        else:
            yield from self._ways_to_open(nodes, path[:depth], above, {key: rest})

    def _ways_to_insert(self, above: yaml.MappingNode, key: str, value: Any, *, at_top: bool) -> Iterator[str]:
        lines = block(key, value, " " * above.value[0][0].start_mark.column)
        if at_top:
            yield self._at_the_end(["", *lines] if len(lines) > 1 else lines)
        yield self._insert_after(_end(above), lines)

    def _ways_to_open(
        self, nodes: _Nodes, path: Keys, node: yaml.Node | None, entries: dict[str, Any]
    ) -> Iterator[str]:
        """Yield *entries* below a key that has no value yet, or an empty one, or one in braces."""
        here: Any = self.get(*path) or {}
        colon, key = nodes.colon(path), nodes.key(path)
        if node is None or here:
            yield from self._ways_to_replace(nodes, path, here | entries)
            return
        lines = [
            line for name, entry in entries.items() for line in block(name, entry, " " * (key.start_mark.column + 2))
        ]
        if _holds_comments(self.text, node):
            return
        bare = replace(self, text=self.text[:colon] + self.text[max(colon, node.end_mark.index) :])
        yield bare._insert_after(colon, lines)
        yield from self._ways_to_replace(nodes, path, entries)

    def _ways_to_replace(self, nodes: _Nodes, path: Keys, value: Any) -> Iterator[str]:
        node = nodes.value(path)
        if node is None or _holds_comments(self.text, node) or _is_block(node):
            return
        start, end = node.start_mark.index, node.end_mark.index
        if start == end:
            start = end = nodes.colon(path)
        space = "" if self.text[start - 1 : start].isspace() else " "
        yield f"{self.text[:start]}{space}{flow(value)}{self.text[end:]}"

    def _ways_to_remove(self, path: Keys) -> Iterator[str]:
        nodes = _Nodes(self.text)
        above = nodes.value(path[:-1])
        if isinstance(above, yaml.MappingNode) and above.flow_style:
            left = {name: entry for name, entry in self.get(*path[:-1]).items() if name != path[-1]}
            yield from self._ways_to_replace(nodes, path[:-1], left)
            return
        key, value = nodes.key(path), nodes.value(path)
        yield _without_lines(self.text, key.start_mark.index, max(nodes.colon(path), _end(value) if value else 0))

    # ---------------------------------------------------------------- cuts

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _indent(self, index: int) -> str:
        line = self.text[self.text.rfind("\n", 0, index) + 1 : index]
        return line[: len(line) - len(line.lstrip())]

    def _insert_after(self, index: int, lines: Sequence[str]) -> str:
        """Return the text with *lines* below the line in which *index* is."""
        end = _line_end(self.text, index)
        return self.text[:end] + "".join(f"{self._newline}{line}" for line in lines) + self.text[end:]

    def _at_the_end(self, lines: Sequence[str]) -> str:
        body = self.text.rstrip()
        rest = self.text[len(body) :] if "\n" in self.text[len(body) :] else self._newline
        return body + "".join(f"{self._newline}{line}" for line in lines) + rest

    def _first(self, ways: Iterator[str], wanted: Any, by_hand: Sequence[str], or_wanted: Any = None) -> YamlText:
        for text in ways:
            changed = replace(self, text=text)
            try:
                if changed.plain in (wanted, or_wanted):
                    return changed
            except (ConfigError, UnicodeError):
                continue
        raise ConfigError(
            "the file cannot be edited safely as it is written, and was not changed",
            file=self.file,
            hint="do it by hand: " + " / ".join(by_hand),
        )


class _Nodes:
    """The parsed nodes of a text, found by path."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: Any = yaml.compose(text, Loader=yaml.CSafeLoader)  # pyright: ignore[reportUnknownMemberType] - its stub says nothing

    def depth(self, path: Keys) -> int:
        """Return how many keys of *path* there are."""
        return next((n for n in range(len(path)) if self._pair(path[: n + 1]) is None), len(path))

    def value(self, path: Keys) -> yaml.Node | None:
        if not path:
            return self._root
        pair = self._pair(path)
        return pair[1] if pair else None

    def key(self, path: Keys) -> yaml.Node:
        pair = self._pair(path)
        assert pair, path
        return pair[0]

    def colon(self, path: Keys) -> int:
        """Return the end of the colon after the last key of *path*."""
        return self._text.index(":", self.key(path).end_mark.index) + 1

    def _pair(self, path: Keys) -> tuple[Any, Any] | None:
        above = self.value(path[:-1])
        pairs: Sequence[tuple[Any, Any]] = above.value if isinstance(above, yaml.MappingNode) else ()
        return next((pair for pair in pairs if pair[0].value == path[-1]), None)


def _holds_comments(text: str, node: yaml.Node) -> bool:
    return not isinstance(node, yaml.ScalarNode) and bool(
        COMMENT.search(text[node.start_mark.index : node.end_mark.index])
    )


def _is_block(node: yaml.Node) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return node.style in ("|", ">")
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _end(node: yaml.Node) -> int:
    """Return the position of the last character of *node*, not counting comments after it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        key, value = node.value[-1]
        return max(key.end_mark.index, _end(value))
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        # Its end mark lies behind the line breaks that follow it.
        return max(node.start_mark.index, node.end_mark.index - 1)
    return node.end_mark.index


def _line_end(text: str, index: int) -> int:
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" and end > index else end


def _without_lines(text: str, start: int, end: int) -> str:
    """Return *text* without the lines from that of *start* to that of *end*."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    return text[:first] + ("" if last < 0 else text[last + 1 :])


def _put(plain: Any, path: Keys, value: Any) -> Any:
    """Return *plain* with *value* at *path*; what is not a mapping on the way becomes one."""
    if not path:
        return value
    entries = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}
    return {**entries, path[0]: _put(entries.get(path[0]), path[1:], value)}


# ---------------------------------------------------------------- plain values as text


def flow(value: Any) -> str:
    """Return *value* on one line."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return "{" + ", ".join(f"{flow(str(key))}: {flow(entry)}" for key, entry in entries.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(flow(item) for item in cast("Sequence[Any]", value)) + "]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False))


def block(key: str, value: Any, indent: str = "") -> list[str]:
    """Return ``key: value`` as lines, a mapping with an entry a line."""
    if isinstance(value, Mapping) and value:
        entries = cast("Mapping[str, Any]", value)
        below = [line for name, entry in entries.items() for line in block(name, entry, f"{indent}  ")]
        return [f"{indent}{flow(key)}:", *below]
    line = f"{indent}{flow(key)}: {flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, list | tuple):
        return [line]
    items = cast("Sequence[Any]", value)
    return [f"{indent}{flow(key)}:", *(f"{indent}  - {flow(item)}" for item in items)]


def _is_plain(text: str) -> bool:
    return bool(PLAIN.fullmatch(text)) and isinstance(scalar(text), str) and text.lower() not in OLD_WORDS
