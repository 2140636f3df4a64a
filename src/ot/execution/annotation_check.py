"""Checks whether a call's arguments are what a pack's function says of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import PurePath
from types import NoneType
from typing import Any, cast

from ot.brief_repr import brief_repr
from ot.execution.arguments import MAX_WRONG, UNSEEN, choice_text, invalid
from ot.registry.tool import Parameter, Tool

MAX_VALUE = 60
MAX_KEPT = 10_000
"""Parameters whose annotations are read once, not once a call."""
ARRAY = (list, tuple, set, frozenset)
"""What stands for each other: JSON knows one kind of them."""
TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str, PurePath),
    "bytes": (bytes,),
    "int": (int,),
    "float": (int, float, Decimal),
    "bool": (int,),
    "None": (NoneType,),
    "dict": (dict,),
    "Dict": (dict,),
    **dict.fromkeys(("list", "List", "tuple", "set", "frozenset"), ARRAY),
}
"""What is taken for each name; a parameter with any other name in its annotation takes everything."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types and the single values that one parameter takes."""

    types: tuple[type, ...] = ()
    options: tuple[Any, ...] = ()

    def has(self, value: Any) -> bool:
        """Return whether *value* is among them; 3.0 is a whole number in JSON."""
        if isinstance(value, self.types) or value is UNSEEN or value in self.options:
            return True
        return int in self.types and isinstance(value, float) and value.is_integer()

    def or_(self, other: Accepted | None) -> Accepted | None:
        """Return the union of both; None if one of them accepts everything."""
        return other and Accepted(self.types + other.types, self.options + other.options)


def read_accepted(tool: Tool) -> dict[str, Accepted]:
    """Return the types that each parameter of *tool* accepts, if that is certain."""
    found = {} if tool.decorated else {parameter.name: _read_accepted(parameter) for parameter in tool.parameters}
    return {name: accepted for name, accepted in found.items() if accepted is not None}


def require_fit(tool: Tool, arguments: Mapping[str, Any], accepted: Mapping[str, Accepted] | None = None) -> None:
    """Check that *arguments* may fit the annotations; only the outermost types are checked.

    Whoever asks often keeps what ``read_accepted`` has found.

    Raises:
        InvalidArguments: One certainly is not; the text says which, what was expected and what was given.
    """
    accepted = read_accepted(tool) if accepted is None else accepted
    wrong = [name for name, value in arguments.items() if name in accepted and not accepted[name].has(value)]
    if wrong:
        parameters = {parameter.name: parameter for parameter in tool.parameters}
        texts = [f"argument '{name}' {_wrong(parameters[name], accepted[name], arguments[name])}" for name in wrong]
        raise invalid(tool, "; ".join(texts[:MAX_WRONG]))


def may_take(parameter: Parameter, value: Any) -> bool:
    """Return whether *value* may be what the annotation of *parameter* asks for."""
    accepted = _read_accepted(parameter)
    return accepted is None or accepted.has(value)


@lru_cache(maxsize=MAX_KEPT)
def _read_accepted(parameter: Parameter) -> Accepted | None:
    """Return the types that a parameter accepts, if that is certain."""
    if not parameter.annotation or parameter.kind in ("args", "kwargs"):
        return None
    try:
        accepted = _read(_parse(parameter.annotation))
        default = Ellipsis if parameter.default is None else ast.literal_eval(parameter.default)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    if accepted is None or default is Ellipsis or accepted.has(default):
        return accepted
    # ``city: str = None`` also means None; with any other default the annotation is not to be believed.
    return accepted.or_(Accepted((NoneType,))) if default is None else None


def _parse(annotation: str) -> ast.expr:
    return ast.parse(annotation.replace("?: ", ": "), mode="eval").body  # {path: str, sheet?: str} is not Python


def _read(node: ast.expr) -> Accepted | None:
    match node:
        case ast.Constant(value=None):
            return Accepted((NoneType,))
        case ast.Constant(value=str(text)):
            return _read(_parse(text))
        case ast.Name(id=name) if name in TYPES:
            return Accepted(TYPES[name])
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([left, right])
        case ast.Subscript(
            value=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="typing"), attr=name), slice=inner
        ):
            return _generic(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
        case _:
            return None


def _generic(name: str, parts: list[ast.expr]) -> Accepted | None:
    if name == "Literal":
        return Accepted(options=tuple(map(ast.literal_eval, parts)))
    if name == "Optional":
        return _any_of([*parts, ast.Constant(None)])
    if name == "Union":
        return _any_of(parts)
    return Accepted(TYPES[name]) if name in TYPES else None


def _any_of(nodes: list[ast.expr]) -> Accepted | None:
    accepted: Accepted | None = Accepted()
    for node in nodes:
        accepted = accepted and accepted.or_(_read(node))
    return accepted


def _wrong(parameter: Parameter, accepted: Accepted, value: Any) -> str:
    if accepted.options and not accepted.types:
        return choice_text(accepted.options, value)
    return f"must be {parameter.annotation}, not {_describe_given(value)}"


def _describe_given(value: Any) -> str:
    if value is None:
        return "None: leave it out"
    kind = type(cast("object", value)).__name__
    return kind if isinstance(value, (*ARRAY, dict)) else f"{kind} {brief_repr(value, MAX_VALUE)}"
