"""The types that a function's source names, with the file's own TypedDicts and names of types written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

MAX_DEPTH = 3
PLAIN_NAMES = {"List": "list", "Dict": "dict", "Tuple": "tuple", "Set": "set"}


type Named = ast.ClassDef | ast.expr
"""A TypedDict, or what another name of a type stands for."""


def named_types(tree: ast.Module) -> dict[str, Named]:
    """Return the classes of a file that are TypedDicts, or begin as one of the file, and its other names of types."""
    found: dict[str, Named] = {}
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name, bases=bases) if any(_last(base) in ("TypedDict", *found) for base in bases):
                found[name] = node
            case ast.TypeAlias(name=ast.Name(id=name), value=value, type_params=[]):
                found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=kind) as value) if (
                _last(kind) == "Literal"
            ):
                found[name] = value
            case _:
                pass
    return found


def written_type(annotation: ast.expr | None, named: Mapping[str, Named]) -> str:
    """Return *annotation* as a reader wants it: ``List[Listed]`` is ``list[{path: str, size: int}]``."""
    return _text(annotation, named, MAX_DEPTH) if annotation is not None else ""


def _text(node: ast.expr, records: Mapping[str, Named], depth: int) -> str:
    match node:
        case ast.Name(id=name) if name in records and depth > 0:
            found = records[name]
            if isinstance(found, ast.expr):
                return _text(found, records, depth - 1)
            return "{" + ", ".join(_keys(found, records, depth - 1)) + "}"
        case ast.Name(id=name):
            return "dict" if isinstance(records.get(name), ast.ClassDef) else PLAIN_NAMES.get(name, name)
        case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)):
            return f"{_text(value, records, 0)}[{', '.join(_text(part, records, depth) for part in parts)}]"
        case ast.Subscript(value=value, slice=part):
            return f"{_text(value, records, 0)}[{_text(part, records, depth)}]"
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return f"{_text(left, records, depth)} | {_text(right, records, depth)}"
        case _:
            return ast.unparse(node)


def _keys(record: ast.ClassDef, records: Mapping[str, Named], depth: int) -> Iterator[str]:
    for base in record.bases:
        # A class can only begin as one that stands before it, so this ends.
        if isinstance(first := records.get(_last(base)), ast.ClassDef) and first.lineno < record.lineno:
            yield from _keys(first, records, depth)
    partial = any(word.arg == "total" and ast.unparse(word.value) == "False" for word in record.keywords)
    for node in record.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind, optional = _without_mark(node.annotation)
            yield f"{node.target.id}{'?' * (optional or partial)}: {_text(kind, records, depth)}"


def _without_mark(annotation: ast.expr) -> tuple[ast.expr, bool]:
    if isinstance(annotation, ast.Subscript) and _last(annotation.value) in ("NotRequired", "Required"):
        return annotation.slice, _last(annotation.value) == "NotRequired"
    return annotation, False


def _last(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2] if isinstance(node, ast.Name | ast.Attribute) else ""
