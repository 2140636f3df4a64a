"""Values, comparisons and calls that the portable engine answers differently from CPython without an error."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Final

from ot.errors import Gap
from ot.runtime.engines.portable.gaps.library import BUILTINS, LACKING_ATTRIBUTES, METHODS, caught
from ot.runtime.engines.portable.gaps.names import PACK, Names
from ot.runtime.engines.portable.gaps.rules import gap
from ot.runtime.program import outside_functions

_FUNCTIONS: tuple[type[ast.AST], ...] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CATCH_ASSERT = frozenset({"AssertionError", "BaseException", "Exception"})
_PYTHONS_OWN = frozenset(dir(builtins)) - {"_"} - BUILTINS.keys()
"""A tool of the host may have put the last value of a session there, as ``_``."""
_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
)


# ---------------------------------------------------------------- what is written out


def builtins_as_items(names: Names) -> Iterator[Gap]:
    """Yield items that are called like a builtin: in comprehensions outside of functions the engine reads that."""
    outside = outside_functions(names.of(ast.Module)[0].body, _FUNCTIONS)
    for node in (node for node in outside if isinstance(node, ast.comprehension)):
        for target in ast.walk(node.target):
            if isinstance(target, ast.Name) and target.id in _PYTHONS_OWN:
                yield gap(target, "builtin as item", name=target.id)


def constants(names: Names) -> Iterator[Gap]:
    """Yield texts that the engine cannot hold."""
    for node in names.of(ast.Constant):
        if isinstance(node.value, str) and not node.value.isascii() and _SURROGATE.search(node.value):
            yield gap(node, "surrogate")


def equal_keys(names: Names) -> Iterator[Gap]:
    """Yield dicts written with keys that are equal and of different types, such as 1 and True."""
    for node in names.of(ast.Dict):
        seen: dict[Any, Any] = {}
        for key in node.keys:
            if isinstance(key, ast.Constant):
                first = seen.setdefault(key.value, key.value)
                if type(first) is not type(key.value):
                    yield gap(key, "equal keys", name=f"{first!r} and {key.value!r}")


def caught_asserts(names: Names) -> Iterator[Gap]:
    """Yield asserts whose message a handler of the program may read: the engine adds the failed comparison to it."""
    handlers = [handler for handler in names.of(ast.ExceptHandler) if handler.name]
    if any(name in _CATCH_ASSERT for handler in handlers for name in caught(handler)):
        asserts = names.of(ast.Assert)
        yield from (gap(node, "caught assert") for node in asserts if not isinstance(node.test, ast.Constant))


# ---------------------------------------------------------------- comparisons


def types_of_exceptions(names: Names) -> Iterator[Gap]:
    """Yield comparisons of type(error) with an exception's class, which are never true."""
    for node in names.of(ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Call) and names.path(side.func) == "type" for side in sides):
            groups = [side.elts for side in sides if isinstance(side, (ast.Tuple, ast.List, ast.Set))]
            if any(names.path(part) in _EXCEPTIONS for part in [*sides, *chain(*groups)]):
                yield gap(node, "type of exception")


def nans_compared(names: Names) -> Iterator[Gap]:
    """Yield comparisons that find a nan in a collection: it is equal to itself there."""
    nans = {id(node) for kind in (ast.Call, ast.Attribute, ast.Name) for node in names.of(kind) if _is_nan(names, node)}
    if not nans:
        return
    values = {node.id: names.only_value(node) for node in names.of(ast.Name)}
    held = {name for name, value in values.items() if value and any(id(part) in nans for part in ast.walk(value))}

    def has_nan(expr: ast.expr) -> bool:
        return any(id(part) in nans or (isinstance(part, ast.Name) and part.id in held) for part in ast.walk(expr))

    for node in names.of(ast.Compare):
        sides = [node.left, *node.comparators]
        inside = any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
        inside = inside or any(isinstance(names.only_value(side) or side, _DISPLAYS) for side in sides)
        if inside and any(map(has_nan, sides)):
            yield gap(node, "nan")


def _is_nan(names: Names, expr: ast.expr) -> bool:
    match expr:
        case ast.Call(func=func, args=[ast.Constant(value=str(text))]) if names.path(func) == "float":
            return text.strip().lower().lstrip("+-") == "nan"
        case _:
            return names.path(expr) == "math.nan"


# ---------------------------------------------------------------- calls

# The sum of a list is worked out here; a longer one is not written out by hand.
_LONGEST_LIST = 100
# What is longer, by a factor, is refused without being worked out.
_LONGEST_SUM = 10_000


def calls(names: Names) -> Iterator[Gap]:
    """Yield calls of builtins with arguments for which the engine has another answer."""
    for call, path in names.calls:
        if call.keywords:
            yield from _order_of_keywords(names, call, path)
        if check := _CHECKS.get(path):
            yield from check(names, call)
        elif path in _EXCEPTIONS:
            yield from _exception(call)


def _order_of_keywords(names: Names, call: ast.Call, path: str) -> Iterator[Gap]:
    given = [keyword.arg is None for keyword in call.keywords]
    # True for **mapping: one that stands before a k=v.
    if True in given and False in given[given.index(True) :] and (path == "dict" or _takes_any(names, call.func)):
        yield gap(call, "order of keywords")


def _takes_any(names: Names, func: ast.expr) -> bool:
    own = names.functions.get(func.id, []) if isinstance(func, ast.Name) else []
    return any(function.args.kwarg for function in own)


def _exception(call: ast.Call) -> Iterator[Gap]:
    # The engine refuses it too, without a line.
    texts = [arg for arg in call.args if not isinstance(arg, ast.Constant) or isinstance(arg.value, str)]
    if len(call.args) > 1 or len(texts) < len(call.args):
        yield gap(call, "exception arguments")


def _round(names: Names, call: ast.Call) -> Iterator[Gap]:
    digits = call.args[1:] or [keyword.value for keyword in call.keywords if keyword.arg == "ndigits"]
    if call.args and digits and not _rounds_alike(digits[0]) and names.kind(call.args[0]) not in ("int", "Decimal"):
        yield gap(call, "round")


def _rounds_alike(digits: ast.expr) -> bool:
    """Whether *digits* are none, zero or negative: no decimal tie can be hit."""
    if isinstance(digits, ast.UnaryOp):
        return isinstance(digits.op, ast.USub)
    return isinstance(digits, ast.Constant) and digits.value in (None, 0)


def _sum(names: Names, call: ast.Call) -> Iterator[Gap]:
    items = call.args[0] if call.args else None
    written, times = _repeated(names.only_value(items) or items)
    if isinstance(written, (ast.List, ast.Tuple)) and "float" in map(names.kind, written.elts[:_LONGEST_LIST]):
        with suppress(ValueError, TypeError):  # not all of it is written out, or not all of it is a number
            numbers: list[float] = list(ast.literal_eval(written)) if len(written.elts) <= _LONGEST_LIST else [0.0]
            if len(numbers) * times > _LONGEST_SUM or reduce(add, numbers * times) != sum(numbers * times):
                yield gap(call, "sum")


def _repeated(items: ast.expr | None) -> tuple[ast.expr | None, int]:
    """Return the list and the number of ``[0.1] * 10``; anything else is there once."""
    if isinstance(items, ast.BinOp) and isinstance(items.op, ast.Mult):
        for written, times in ((items.left, items.right), (items.right, items.left)):
            if isinstance(times, ast.Constant) and isinstance(times.value, int) and times.value > 0:
                return written, times.value
    return items, 1


def _hasattr(names: Names, call: ast.Call) -> Iterator[Gap]:
    if len(call.args) < 2 or not isinstance(call.args[1], ast.Constant) or names.is_pack(call.args[0]):
        return
    name = call.args[1].value
    if (name in METHODS or name in LACKING_ATTRIBUTES) and not names.may_have(name):
        yield gap(call, "hasattr", name=f"{names.path(call.func)}(x, {name!r})")


def _setattr(names: Names, call: ast.Call) -> Iterator[Gap]:
    if call.args and names.is_pack(call.args[0]):
        yield gap(call, "pack attribute", name=names.path(call.args[0]).removeprefix(PACK))


_CHECKS: Final = {"getattr": _hasattr, "hasattr": _hasattr, "round": _round, "setattr": _setattr, "sum": _sum}
