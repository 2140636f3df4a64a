"""Names, attributes and values written in a program that the portable engine does not have."""

from __future__ import annotations

import ast
import builtins as python_builtins
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ot.errors import Gap
from ot.runtime.engines.portable_gaps.library import (
    ANY_NAME,
    BUILTINS,
    INSTEAD_OF_NAME,
    LACKING_ATTRIBUTES,
    METHOD_NAMES,
    METHODS,
    MODULES,
    TYPE_ATTRIBUTES,
    TYPE_VALUES,
)
from ot.runtime.engines.portable_gaps.names import PACK, Names
from ot.runtime.engines.portable_gaps.report import gap
from ot.runtime.engines.portable_gaps.rules import EXCEPTIONS

_FUNCTIONS: tuple[type[ast.AST], ...] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SURROGATE = re.compile("[\ud800-\udfff]")


def builtins(names: Names) -> Iterator[Gap]:
    """Yield builtins that are missing and that the program does not define itself."""
    # @classmethod is refused with the method that it stands above.
    decorators = {id(node) for method in names.nodes.of(ast.FunctionDef) for node in method.decorator_list}
    for node in names.nodes.of(ast.Name):
        if node.id in BUILTINS and id(node) not in decorators and not names.binds(node.id):
            yield gap(node, "builtin", name=node.id, instead=BUILTINS[node.id])


PYTHONS_OWN = frozenset(dir(python_builtins)) - {"_"}
"""A tool of the host may have put the last value of a session there, as ``_``."""


def builtins_as_items(names: Names) -> Iterator[Gap]:
    """Yield items that are called like a builtin: in comprehensions outside of functions the engine reads that."""
    found = [
        (node, target)
        for node in names.nodes.of(ast.comprehension)
        for target in ast.walk(node.target)
        if isinstance(target, ast.Name) and target.id in PYTHONS_OWN and target.id not in BUILTINS
    ]
    functions = [part for kind in _FUNCTIONS for part in names.nodes.of(kind)] if found else []
    inside = {id(node) for function in functions for node in ast.walk(function)}
    yield from (gap(target, "builtin as item", name=target.id) for node, target in found if id(node) not in inside)


def attributes(names: Names) -> Iterator[Gap]:
    """Yield attributes that what they are asked of certainly does not have."""
    called = {id(node.func) for node in names.nodes.of(ast.Call)}
    for node in names.nodes.of(ast.Attribute):
        if _is_function(names, node.value):
            yield gap(node, "function attribute", name=node.attr)
            continue
        if not isinstance(node.ctx, ast.Load) and names.is_pack(node.value):
            yield gap(node, "pack attribute", name=names.path(node).removeprefix(PACK))
        if not isinstance(node.ctx, ast.Load) or names.is_pack(node):
            continue
        base, kind = names.path(node.value), names.kind(node.value)
        if base in MODULES or base in TYPE_ATTRIBUTES:
            yield from _of_library(node, base, called=id(node) in called)
        elif kind in METHODS:
            yield from _of_literal(node, kind, called=id(node) in called)
        elif not base:
            yield from _of_unknown(names, node, called=id(node) in called)


def _is_function(names: Names, expr: ast.expr) -> bool:
    if not isinstance(expr, ast.Name) or len(names.values(expr.id)) != 1:
        return False
    if expr.id in names.decorated:
        return True
    own = names.functions.get(expr.id, [])
    # A decorator may have put something else under the name: a cached function has cache_info().
    return len(own) == 1 and not getattr(own[0], "decorator_list", None)


def _of_library(node: ast.Attribute, base: str, *, called: bool) -> Iterator[Gap]:
    path = f"{base}.{node.attr}"
    if base in MODULES:
        if node.attr not in MODULES[base] and path not in MODULES:
            yield gap(node, "name", name=path, instead=INSTEAD_OF_NAME.get(path, ANY_NAME))
    elif node.attr not in TYPE_ATTRIBUTES[base] | {"__name__"}:
        if instead := INSTEAD_OF_NAME.get(path) or LACKING_ATTRIBUTES.get(node.attr):
            yield gap(node, "name", name=path, instead=instead)
        else:
            yield gap(node, "type method", name=path, method=node.attr)
    elif not called and node.attr not in TYPE_VALUES:
        yield gap(node, "method value", name=node.attr)


def _of_literal(node: ast.Attribute, kind: str, *, called: bool) -> Iterator[Gap]:
    if node.attr not in METHODS[kind]:
        # What CPython does not have either is a slip of the program, not a gap.
        if instead := LACKING_ATTRIBUTES.get(node.attr) or (ANY_NAME if hasattr(_CPYTHON[kind], node.attr) else ""):
            yield gap(node, "attribute", name=node.attr, instead=instead)
    elif not called:
        yield gap(node, "method value", name=node.attr)


_CPYTHON: dict[str, Any] = {
    kind.__name__: kind for kind in (str, bytes, int, float, bool, list, tuple, dict, set, frozenset, range)
}


def _of_unknown(names: Names, node: ast.Attribute, *, called: bool) -> Iterator[Gap]:
    if isinstance(node.value, ast.Name) and node.value.id in names.exceptions:
        if node.attr != "args":
            yield gap(node, "exception attribute")
    elif names.packs_escape or node.attr in names.attributes:
        return
    elif instead := LACKING_ATTRIBUTES.get(node.attr):
        yield gap(node, "attribute", name=node.attr, instead=instead)
    elif not called and node.attr in METHOD_NAMES:
        yield gap(node, "method value", name=node.attr)


# ---------------------------------------------------------------- values that are written out


def constants(names: Names) -> Iterator[Gap]:
    """Yield texts that the engine cannot hold."""
    for node in names.nodes.of(ast.Constant):
        if isinstance(node.value, str) and not node.value.isascii() and _SURROGATE.search(node.value):
            yield gap(node, "surrogate")


def equal_keys(names: Names) -> Iterator[Gap]:
    """Yield dicts written with keys that are equal and of different types, such as 1 and True."""
    for node in names.nodes.of(ast.Dict):
        seen: dict[Any, Any] = {}
        for key in node.keys:
            if isinstance(key, ast.Constant):
                first = seen.setdefault(key.value, key.value)
                if type(first) is not type(key.value):
                    yield gap(key, "equal keys", name=f"{first!r} and {key.value!r}")


def types_of_exceptions(names: Names) -> Iterator[Gap]:
    """Yield comparisons of type(error) with an exception's class, which are never true."""
    for node in names.nodes.of(ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Call) and names.path(side.func) == "type" for side in sides):
            groups = [side.elts for side in sides if isinstance(side, (ast.Tuple, ast.List, ast.Set))]
            if any(names.path(part) in EXCEPTIONS for part in [*sides, *chain(*groups)]):
                yield gap(node, "type of exception")


_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


def nans_compared(names: Names) -> Iterator[Gap]:
    """Yield comparisons that find a nan in a collection: it is equal to itself there."""
    nans = {
        id(node)
        for kind in (ast.Call, ast.Attribute, ast.Name)
        for node in names.nodes.of(kind)
        if _is_nan(names, node)
    }
    if not nans:
        return
    values = {node.id: _only_value(names, node) for node in names.nodes.of(ast.Name)}
    held = {name for name, value in values.items() if value and any(id(part) in nans for part in ast.walk(value))}

    def has_nan(expr: ast.expr) -> bool:
        return any(id(part) in nans or (isinstance(part, ast.Name) and part.id in held) for part in ast.walk(expr))

    for node in names.nodes.of(ast.Compare):
        sides = [node.left, *node.comparators]
        inside = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
        inside = inside or any(isinstance(_only_value(names, side) or side, _DISPLAYS) for side in sides)
        if inside and any(map(has_nan, sides)):
            yield gap(node, "nan")


def _only_value(names: Names, expr: ast.expr) -> ast.expr | None:
    """Return what the text assigns to the name *expr*, if that is one thing."""
    values = names.values(expr.id) if isinstance(expr, ast.Name) else []
    return values[0] if len(values) == 1 else None


def _is_nan(names: Names, expr: ast.expr) -> bool:
    match expr:
        case ast.Call(func=func, args=[ast.Constant(value=str(text))]) if names.path(func) == "float":
            return text.strip().lower().lstrip("+-") == "nan"
        case _:
            return names.path(expr) == "math.nan"
