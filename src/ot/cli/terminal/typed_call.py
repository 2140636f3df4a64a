"""A call of a pack's tool as it was typed: read, never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer

HOW = """write one call with its arguments written out, such as hello(name="you", times=3)"""


@dataclass(frozen=True)
class DevCall:
    """A call as it was typed."""

    pack: str
    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def parse_call(pack: str, text: str) -> DevCall:
    """Return *text*, such as ``hello(name="you")`` or ``pack.hello(name="you")``, as a call.

    Raises:
        typer.BadParameter: It is anything else; nothing in it is evaluated.
    """
    try:
        return _call(pack, ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise typer.BadParameter(f"'{text[:80]}' is no such call: {HOW}") from None


def _call(pack: str, node: ast.expr) -> DevCall:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == pack:
            pass
        case _:
            raise ValueError(HOW)
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    if len(named) < len(node.keywords):
        raise ValueError(HOW)
    return DevCall(pack, name, [ast.literal_eval(argument) for argument in node.args], named)
