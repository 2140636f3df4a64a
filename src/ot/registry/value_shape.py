"""Shape: the names and types of plain data, never its values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, cast

import orjson
from pydantic import PlainSerializer, TypeAdapter

from ot.registry.schema_types import key_text

MAX_KEYS = 40
MAX_DEPTH = 6
MAX_PARTS = 400
MAX_TEXT = 400
SAMPLE = 20
"""How many items of a list are looked at."""
MAX_JSON_TEXT = 256 << 10
"""A longer text is not looked into for JSON."""
ALIKE = 4
"""From this many keys on, objects that are all of one form are taken for a table by key."""

NAME = re.compile(r"[A-Za-z_@$][A-Za-z0-9_@$ -]{0,31}")
DATA = re.compile(r"\d{3}|[0-9a-fA-F]{12}|\d.*[-_ ].*\d|(?=.*\d)[0-9a-fA-F]{6}")
"""What keys look like that are data: numbers, hashes, dates."""

Names = Annotated[frozenset[str], PlainSerializer(sorted)]
"""Written in one order, so that the same shape is the same text."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What was seen at one place: plain types, keys (some not always there), values by key, items, JSON in text."""

    types: Names = frozenset()
    keys: Mapping[str, Shape] | None = None
    optional: Names = frozenset()
    values: Shape | None = None
    items: Shape | None = None
    inside: Shape | None = None


NOTHING = Shape()


def shape_of(value: Any) -> Shape:
    """Return the shape of *value*, found with bounded work: what is too much of it is not looked at."""
    return _shape(value, iter(range(MAX_PARTS)), MAX_DEPTH)


def _shape(value: Any, left: Iterator[int], depth: int) -> Shape:
    if next(left, None) is None:
        return NOTHING
    if isinstance(value, str):
        return Shape(frozenset({"str"}), inside=_json_inside(value, left, depth))
    if isinstance(value, dict):
        return _object(cast("dict[Any, Any]", value), left, depth) if depth else Shape(frozenset({"dict"}))
    if isinstance(value, list | tuple):
        found = cast("list[Any]", value) if depth else []
        item = NOTHING
        for part in found[:SAMPLE]:
            item = merge(item, _shape(part, left, depth - 1))
        return Shape(items=item)
    name = "None" if value is None else type(value).__name__
    return Shape(frozenset({name if name in ("None", "bool", "int", "float", "bytes") else "Any"}))


def _object(value: dict[Any, Any], left: Iterator[int], depth: int) -> Shape:
    if len(value) > MAX_KEYS or not all(isinstance(key, str) and is_name(key) for key in value):
        together = NOTHING
        for key in list(value)[:SAMPLE]:
            together = merge(together, _shape(value[key], left, depth - 1))
        return Shape(values=together)
    keys = {str(key): _shape(part, left, depth - 1) for key, part in value.items()}
    return _table(Shape(keys=keys))


def is_name(key: str) -> bool:
    """Return whether *key* looks like a field's name and not like data."""
    return bool(NAME.fullmatch(key)) and not DATA.search(key)


def _table(shape: Shape) -> Shape:
    """Return objects that are all of one form, under many keys, as values by key: such keys are data."""
    parts = list((shape.keys or {}).values())
    forms = [frozenset(part.keys) for part in parts if part.keys]
    if len(parts) >= ALIKE and len(forms) == len(parts) and len(set(forms)) == 1:
        return _by_key(shape)
    return shape


def _by_key(shape: Shape) -> Shape:
    together = shape.values or NOTHING
    for part in (shape.keys or {}).values():
        together = merge(together, part)
    return replace(shape, keys=None, optional=frozenset(), values=together)


def _json_inside(text: str, left: Iterator[int], depth: int) -> Shape | None:
    if depth < 1 or text[:200].lstrip()[:1] not in ("{", "[") or len(text) > MAX_JSON_TEXT:
        return None
    try:
        found = orjson.loads(text)
    except ValueError:
        return None
    return _shape(found, left, depth - 1) if found else None


def merge(one: Shape, other: Shape) -> Shape:
    """Return the shape of what has either shape."""
    if NOTHING in (one, other) or one == other:
        return other if one == NOTHING else one
    # Text that only sometimes holds JSON must not be promised to.
    both_inside = all(shape.inside is not None or "str" not in shape.types for shape in (one, other))
    merged = Shape(
        types=one.types | other.types,
        values=_either(one.values, other.values),
        items=_either(one.items, other.items),
        inside=_either(one.inside, other.inside) if both_inside else None,
    )
    if one.keys is None or other.keys is None:
        found = one if one.keys is not None else other
        merged = replace(merged, keys=found.keys, optional=found.optional)
    else:
        merged = replace(merged, **_merge_keys(one, other))
    too_many = merged.keys is not None and (merged.values is not None or len(merged.keys) > MAX_KEYS)
    return _by_key(merged) if too_many else merged


def _either(one: Shape | None, other: Shape | None) -> Shape | None:
    return merge(one, other) if one is not None and other is not None else one or other


def _merge_keys(one: Shape, other: Shape) -> dict[str, Any]:
    first, second = one.keys or {}, other.keys or {}
    keys = {key: merge(first.get(key, NOTHING), second.get(key, NOTHING)) for key in {**first, **second}}
    return {"keys": keys, "optional": one.optional | other.optional | (first.keys() ^ second.keys())}


def shape_text(shape: Shape) -> str:
    """Return the shape as a type, such as ``{id: int, labels?: list[str]}``."""
    for depth in range(MAX_DEPTH, -1, -1):
        text = _text(shape, depth)
        if len(text) <= MAX_TEXT:
            return text
    return "Any"


def _text(shape: Shape, depth: int) -> str:
    parts: list[str] = []
    if shape.keys is not None:
        shown = (f"{key_text(k)}{'?' * (k in shape.optional)}: {_text(v, depth - 1)}" for k, v in shape.keys.items())
        parts.append("{" + ", ".join(shown) + "}" if shape.keys and depth > 0 else "dict")
    if shape.values is not None:
        parts.append(_of("dict[str, {}]", shape.values, depth) or "dict")
    if shape.items is not None:
        parts.append(_of("list[{}]", shape.items, depth) or "list")
    for kind in sorted(shape.types - {"None"}):
        holds = kind == "str" and shape.inside is not None and depth > 0
        parts.append(f"str holding JSON {_text(cast('Shape', shape.inside), depth - 1)}" if holds else kind)
    return " | ".join([*parts, *["None"] * ("None" in shape.types)]) or "Any"


def _of(form: str, part: Shape, depth: int) -> str:
    text = _text(part, depth - 1) if depth > 0 else "Any"
    return "" if text == "Any" else form.format(text)


@cache
def _adapter() -> TypeAdapter[Shape]:
    return TypeAdapter(Shape)


def shape_to_json(shape: Shape) -> dict[str, Any]:
    """Return the shape as JSON has it."""
    return _adapter().dump_python(shape, mode="json", exclude_defaults=True)


def shape_of_json(plain: Mapping[str, Any]) -> Shape:
    """Return the shape that ``shape_to_json`` wrote; raise ValueError if it is malformed."""
    try:
        return _adapter().validate_python(plain)
    except ValueError as error:
        raise ValueError("not a shape") from error
