"""The formats that a program may ask for with ``__format__``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import orjson

from ot.values.jsonable import MAX_NODES, Describe, describe_type, jsonable, utf8
from ot.values.parts import holds_more

DEFAULT = "json"
MAX_YAML_PARTS = 50_000
"""YAML is written twenty times slower than JSON, which stands in for it above this: JSON is YAML, too."""
MAX_FLOW_LEVELS = 2
WIDTH = 1 << 30
LONG = 120
"""Characters of one line above which an object that holds others is a key a line, and a list of sentences an item."""
UNWRITABLE = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML can hold only as an escape, or takes for the end of a line."""


def serialize_result(
    value: Any, format: object = None, describe: Describe = describe_type, *, max_nodes: int = MAX_NODES
) -> str:
    """Return *value* as text: a string as it is, all else in *format*, compact JSON when that is unknown.

    Raises:
        NotSerializable: The value is nested too deeply, or holds too much.
    """
    if type(value) is str:
        return utf8(value)
    if value is None:
        return "None"
    shown = jsonable(value, describe, max_nodes=max_nodes)
    if format == "raw":
        return _raw(value, shown)
    write = FORMATS.get(format, FORMATS[DEFAULT]) if type(format) is str else FORMATS[DEFAULT]
    return shown if type(shown) is str else write(shown)


def compact_json(value: Any) -> str:
    """Return JSON types as JSON on one line."""
    return orjson.dumps(value).decode()


def _json_h(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _yml(value: Any) -> str:
    if not holds_more(value, MAX_YAML_PARTS):
        return yaml_flow(value)
    # A list of collections reads best an item a line; each item is inline.
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):  # pyright: ignore[reportUnknownVariableType] - JSON types
        return "\n".join(f"- {compact_json(item)}" for item in value)  # pyright: ignore[reportUnknownVariableType] - JSON types
    return compact_json(value)


def _yml_h(value: Any) -> str:
    if holds_more(value, MAX_YAML_PARTS):
        return _json_h(value)
    yaml = _library()
    text: str = yaml.dump(
        value, Dumper=_dumper(yaml), default_flow_style=False, sort_keys=False, allow_unicode=True, width=120
    )
    return _trim(text)


def _raw(value: Any, shown: Any) -> str:
    """Return ``str(value)``; *shown* exists, so the value is known to be bounded."""
    try:
        return utf8(str(value))
    except ValueError:  # an int of too many digits
        return str(shown)


def _page(value: Any) -> str:
    """Return a page of a stored result as YAML, its lines as they are: one text, for quotes and escapes mislead."""
    page = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    lines = page.get("lines")
    if not isinstance(lines, list) or not lines or not all(map(_is_writable, cast("list[Any]", lines))):
        return _yml(value)
    listed = cast("list[str]", lines)
    # YAML has to be told where the first line does not show how far all are indented, and where empty lines end it.
    mark = ("2" if listed[0][:1] in ("", " ") else "") + ("" if listed[-1] else "+")
    written = "".join(f"  {line}\n" if line else "\n" for line in listed)
    facts = (f"{key}: {compact_json(fact)}" for key, fact in page.items() if key != "lines")
    return f"lines: |{mark}\n{written}" + "\n".join(facts)


def _is_writable(line: Any) -> bool:
    return isinstance(line, str) and not UNWRITABLE.search(line)


PAGE_FORMAT = "page"
"""How a page that is the whole reply is shown."""
FORMATS: dict[str, Callable[[Any], str]] = {
    "json": compact_json,
    "json_h": _json_h,
    "yml": _yml,
    "yml_h": _yml_h,
    PAGE_FORMAT: _page,
}


def yaml_flow(value: Any) -> str:
    """Return JSON types as YAML: what is simple stands inline, what holds more a key or an object a line."""
    yaml = _library()
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(value)
    _Style(yaml).apply(node)
    text = _text(yaml, node)
    if len(text) > LONG and isinstance(node, yaml.MappingNode) and node.flow_style:
        node.flow_style = not any(isinstance(part, yaml.CollectionNode) and part.value for _, part in node.value)
        text = _text(yaml, node)
    return text


def _text(yaml: Any, node: Any) -> str:
    return _trim(yaml.serialize(node, Dumper=_dumper(yaml), allow_unicode=True, width=WIDTH))


def _trim(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\n...")


def _dumper(yaml: Any) -> Any:
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _library() -> Any:
    import yaml  # noqa: PLC0415 - most replies are JSON; YAML's import costs a third of a run's budget at start

    return yaml


class _Style:
    """Decides node by node, from the leaves up, what stands inline."""

    def __init__(self, yaml: Any) -> None:
        self._mapping, self._sequence = yaml.MappingNode, yaml.SequenceNode

    def apply(self, node: Any) -> int:
        """Style *node* and what is in it, and return how many levels it has; too many when it is not inline."""
        parts = self._parts(node)
        if not parts:
            return 0
        levels = 1 + max(self.apply(part) for part in parts)
        objects = isinstance(node, self._sequence) and any(map(self._parts, parts))
        node.flow_style = levels <= MAX_FLOW_LEVELS and not objects and not self._is_prose(node)
        if node.flow_style:
            return levels
        for part in parts:
            # Inline a text of many lines is one long one; here it can stand as it is.
            if isinstance(part.value, str) and "\n" in part.value:
                part.style = "|"
        return MAX_FLOW_LEVELS + 1

    def _is_prose(self, node: Any) -> bool:
        """Whether *node* is a list of sentences or lines, of which nobody wants to read many on one line."""
        if not isinstance(node, self._sequence) or len(node.value) < 2:
            return False
        texts = [part.value for part in node.value if isinstance(part.value, str)]
        return sum(map(len, texts)) > LONG and any(" " in text or "\t" in text for text in texts)

    def _parts(self, node: Any) -> list[Any]:
        if isinstance(node, self._mapping):
            return [value for _, value in node.value]
        return node.value if isinstance(node, self._sequence) else []
