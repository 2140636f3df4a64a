"""What a program answers in CPython: run as a script, isolated, so that nothing of the test process is near it.

The form of an answer (`encode`) is shared with the other side, so that both are compared by type and value.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import decimal
import inspect
import io
import json
import sys
import warnings
from typing import Any

# One-pass iterators and views are shown as the list of what they give; subclasses of dict and deque as plain data.
_AS_LIST = frozenset(
    """callable_iterator chain deque dict_items dict_keys dict_values enumerate filter generator islice
    list_reverseiterator map product range reversed zip""".replace("\n", " ").split(" ")
)
_SCALARS = (bool, int, str, bytes, type(None))


class Pack:
    """A pack whose calls are written down: calling a tool too often is a difference too."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def echo(self, value: Any = None, **named: Any) -> Any:
        self.calls.append(["echo", encode(value), encode(named)])
        return value

    def double(self, value: Any) -> Any:
        self.calls.append(["double", encode(value)])
        return value * 2

    def fail(self, message: str = "no") -> Any:
        self.calls.append(["fail", message])
        raise ValueError(message)


def encode(value: Any) -> Any:
    """Return *value* as JSON that keeps types, the order of dicts and the sign of zero."""
    name = type(value).__name__
    if isinstance(value, _SCALARS):
        return [name, repr(value)]
    if isinstance(value, dict):
        return ["dict", [[encode(key), encode(item)] for key, item in value.items()]]
    if isinstance(value, (set, frozenset)):
        return [name, sorted((encode(item) for item in value), key=repr)]
    if isinstance(value, (list, tuple)) or name in _AS_LIST:
        return [name if isinstance(value, tuple) else "list", [encode(item) for item in value]]
    return ["Path" if "Path" in name else name, str(value)]


def run(source: str) -> dict[str, Any]:
    """Return what CPython makes of *source*: its value or the type it raised, its prints, its calls to the pack."""
    pack, printed = Pack(), io.StringIO()
    names: dict[str, Any] = {"__name__": "__main__", "pack": pack}
    decimal.setcontext(decimal.Context())  # a case may have changed it
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            answer = {"value": encode(_value(source, names))}
        except BaseException as error:  # noqa: BLE001 - whatever a case raises is its answer
            answer = {"error": type(error).__name__}
    return {**answer, "printed": printed.getvalue(), "calls": pack.calls}


def _value(source: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(source)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_value", ast.Store())], last.value), last)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(ast.fix_missing_locations(tree), "<case>", "exec", flags, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names.get("_value")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(json.dumps([run(source) for source in json.load(sys.stdin)]))
