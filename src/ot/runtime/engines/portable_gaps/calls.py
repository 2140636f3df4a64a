"""Calls that the portable engine refuses or answers differently."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from operator import add
from types import MappingProxyType

from ot.errors import Gap
from ot.runtime.engines.portable_gaps.library import ANY_KEYWORD, KEYWORDS, LACKING_ATTRIBUTES, METHOD_NAMES
from ot.runtime.engines.portable_gaps.names import PACK, Names
from ot.runtime.engines.portable_gaps.report import gap
from ot.runtime.engines.portable_gaps.rules import ENCODINGS, EXCEPTIONS

# The sum of a list is worked out here; a longer one is not written out by hand.
_LONGEST_LIST = 100
# What is longer, by a factor, is refused without being worked out.
_LONGEST_SUM = 10_000
Check = Callable[[Names, ast.Call], Iterator[Gap]]


def calls(names: Names) -> Iterator[Gap]:
    """Yield calls of known functions with arguments that do not work, or work differently."""
    for call, path in names.calls:
        if call.keywords:
            yield from _keywords(call, path)
            yield from _order_of_keywords(names, call, path)
        if check := _CHECKS.get(path):
            yield from check(names, call)
        elif path in EXCEPTIONS:
            yield from _exception(call)
        elif isinstance(call.func, ast.Attribute) and not path and call.func.attr not in names.attributes:
            yield from _method(call, call.func.attr)


def _keywords(call: ast.Call, path: str) -> Iterator[Gap]:
    lacking = KEYWORDS.get(path, {})
    for keyword in call.keywords if lacking else ():
        if keyword.arg and (instead := lacking.get(keyword.arg) or lacking.get(ANY_KEYWORD)):
            yield gap(keyword, "keyword", name=f"{path}({keyword.arg}=)", instead=instead)


def _order_of_keywords(names: Names, call: ast.Call, path: str) -> Iterator[Gap]:
    given = [keyword.arg is None for keyword in call.keywords]
    # True for **mapping: one that stands before a k=v.
    if True in given and False in given[given.index(True) :] and (path == "dict" or _takes_any(names, call.func)):
        yield gap(call, "order of keywords")


def _takes_any(names: Names, func: ast.expr) -> bool:
    own = names.functions.get(func.id, []) if isinstance(func, ast.Name) else []
    return any(function.args.kwarg for function in own)


def _exception(call: ast.Call) -> Iterator[Gap]:
    texts = [arg for arg in call.args if not isinstance(arg, ast.Constant) or isinstance(arg.value, str)]
    if len(call.args) > 1 or len(texts) < len(call.args):
        yield gap(call, "exception arguments")


def _method(call: ast.Call, name: str) -> Iterator[Gap]:
    first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if name in ("encode", "decode"):
        yield from _encoding(call, first)
    elif (name in ("start", "end", "span") and isinstance(first, str)) or (name == "groups" and _arguments(call)):
        yield gap(call, "match arguments", name=name)
    elif name in ("union", "intersection", "difference") and len(call.args) > 1:
        yield gap(call, "one set", name=name)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _encoding(call: ast.Call, first: object) -> Iterator[Gap]:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "encoding"]
    given = named[0].value if named and isinstance(named[0], ast.Constant) else first
    if isinstance(given, str) and given.lower().replace("_", "-") not in ENCODINGS:
        yield gap(call, "encoding", name=given)


# ---------------------------------------------------------------- builtins


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
    if isinstance(items, ast.Name) and len(values := names.values(items.id)) == 1:
        items = values[0]
    written, times = _repeated(items)
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
    unseen = name in METHOD_NAMES or name in LACKING_ATTRIBUTES
    if unseen and name not in names.attributes and not names.packs_escape:
        yield gap(call, "hasattr", name=f"{names.path(call.func)}(x, {name!r})")


def _setattr(names: Names, call: ast.Call) -> Iterator[Gap]:
    if call.args and names.is_pack(call.args[0]):
        yield gap(call, "pack attribute", name=names.path(call.args[0]).removeprefix(PACK))


def _timedelta(names: Names, call: ast.Call) -> Iterator[Gap]:
    if any(names.kind(given) == "float" for given in _arguments(call)):
        yield gap(call, "fraction of time")


def _object(_names: Names, call: ast.Call) -> Iterator[Gap]:
    yield gap(call, "sentinel")


def _bytes(names: Names, call: ast.Call) -> Iterator[Gap]:
    if call.args and names.kind(call.args[0]) in ("list", "tuple", "range", "lazy"):
        yield gap(call, "bytes")


_CHECKS: MappingProxyType[str, Check] = MappingProxyType(
    {
        "bytes": _bytes,
        "datetime.timedelta": _timedelta,
        "getattr": _hasattr,
        "hasattr": _hasattr,
        "object": _object,
        "round": _round,
        "setattr": _setattr,
        "sum": _sum,
    }
)
