"""The JSON schema of a parameter, from its annotation as source text; what it does not know it leaves open."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

SIMPLE: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
}
LISTS = frozenset({"list", "List", "Sequence", "Iterable", "Collection", "set", "Set", "frozenset", "tuple", "Tuple"})
DICTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
MAX_DEPTH = 20


def schema_of_annotation(annotation: str) -> Schema:
    """Return the JSON schema of a type; an empty one, which allows everything, where it is not known."""
    try:
        return _schema(ast.parse(annotation, mode="eval").body, 0) if annotation else {}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _schema(node: ast.expr, depth: int) -> Schema:
    if depth > MAX_DEPTH:
        return {}
    match node:
        case ast.Constant(value=None):
            return dict(SIMPLE["None"])
        case ast.Constant(value=str(text)):
            return _schema(ast.parse(text, mode="eval").body, depth + 1)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([_schema(left, depth + 1), _schema(right, depth + 1)])
        case ast.Subscript(value=value, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _generic(_name(value), parts, depth + 1)
        case _:
            return _plain(_name(node))


def _name(node: ast.expr) -> str:
    """Return the last part of a dotted name: ``typing.Literal`` is ``Literal``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _plain(name: str) -> Schema:
    if name in LISTS:
        return {"type": "array"}
    return {"type": "object"} if name in DICTS else dict(SIMPLE.get(name, {}))


def _generic(name: str, parts: list[ast.expr], depth: int) -> Schema:
    if name in ("tuple", "Tuple") and not (len(parts) == 2 and isinstance(parts[1], ast.Constant)):
        return {"type": "array"}
    if name in LISTS:
        return _with("array", "items", _schema(parts[0], depth))
    if name in DICTS:
        return _with("object", "additionalProperties", _schema(parts[-1], depth))
    special: dict[str, Callable[[], Schema]] = {
        "Literal": lambda: _literal(parts),
        "Optional": lambda: _any_of([_schema(parts[0], depth), dict(SIMPLE["None"])]),
        "Union": lambda: _any_of([_schema(part, depth) for part in parts]),
        "Annotated": lambda: _schema(parts[0], depth),
    }
    return special[name]() if name in special else {}


def _with(type: str, key: str, inner: Schema) -> Schema:
    return {"type": type, key: inner} if inner else {"type": type}


def _literal(parts: list[ast.expr]) -> Schema:
    values = [ast.literal_eval(part) for part in parts]
    return {"enum": values} if all(value is None or isinstance(value, str | int | bool) for value in values) else {}


def _any_of(schemas: list[Schema]) -> Schema:
    if not all(schemas):
        return {}
    flat = [part for schema in schemas for part in schema.get("anyOf", [schema])]
    unique = [schema for index, schema in enumerate(flat) if schema not in flat[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}
