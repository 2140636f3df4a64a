"""Values, comparisons, calls and patterns that the portable engine answers unlike CPython without an error."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from itertools import chain
from operator import add
from re import _parser  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any, Final

from ot.errors import Gap
from ot.runtime.engines.portable.gaps.library import BUILTINS, LACKING_ATTRIBUTES, METHODS, list_caught
from ot.runtime.engines.portable.gaps.names import PACK, Names
from ot.runtime.engines.portable.gaps.rules import FIND_ALL, PATTERNS, SAFE_REPLACEMENT, TAKE_PATTERN, gap
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


def find_caught_asserts(names: Names) -> Iterator[Gap]:
    """Yield asserts whose message a handler of the program may read: the engine adds the failed comparison to it."""
    handlers = [handler for handler in names.of(ast.ExceptHandler) if handler.name]
    if any(name in _CATCH_ASSERT for handler in handlers for name in list_caught(handler)):
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
    written, times = _read_repetition(names.only_value(items) or items)
    if isinstance(written, (ast.List, ast.Tuple)) and "float" in map(names.kind, written.elts[:_LONGEST_LIST]):
        with suppress(ValueError, TypeError):  # not all of it is written out, or not all of it is a number
            numbers: list[float] = list(ast.literal_eval(written)) if len(written.elts) <= _LONGEST_LIST else [0.0]
            if len(numbers) * times > _LONGEST_SUM or reduce(add, numbers * times) != sum(numbers * times):
                yield gap(call, "sum")


def _read_repetition(items: ast.expr | None) -> tuple[ast.expr | None, int]:
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


# Parsing a longer pattern would cost more than the run; nobody writes one by hand.
_LONGEST_PATTERN = 500
_CAN_BE_EMPTY = re.compile(r"[*{|]|(?<!\()\?")


def regular_expressions(names: Names) -> Iterator[Gap]:
    """Yield patterns and replacements that mean something else here than in CPython."""
    for call, path in names.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        compiled = _find_compile(names, call.func) if method in FIND_ALL else None
        function = method if compiled else path.removeprefix("re.")
        if compiled or (path.startswith("re.") and function in TAKE_PATTERN):
            pattern = _text(names, _argument(compiled or call, 0, "pattern"))
            yield from _check_pattern(call, pattern, function)
            if function == "sub":
                text = _text(names, _argument(call, 0 if compiled else 1, "repl"))
                yield from _replacement(call, text, pattern)


def _find_compile(names: Names, method: ast.expr) -> ast.Call | None:
    """Return the re.compile() whose pattern *method* is looked up in."""
    owner = method.value if isinstance(method, ast.Attribute) else None
    made = names.only_value(owner) or owner
    return made if isinstance(made, ast.Call) and names.path(made.func) == "re.compile" else None


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    named = next((given.value for given in call.keywords if given.arg == keyword), None)
    return call.args[position] if len(call.args) > position else named


def _text(names: Names, expr: ast.expr | None) -> str | None:
    expr = names.only_value(expr) or expr
    return expr.value if isinstance(expr, ast.Constant) and isinstance(expr.value, str) else None


def _check_pattern(call: ast.Call, pattern: str | None, function: str) -> Iterator[Gap]:
    if pattern is None or len(pattern) > _LONGEST_PATTERN:
        return
    wrong = [rule for wrong, rule in PATTERNS.items() if re.search(wrong, pattern)]
    yield from (gap(call, rule) for rule in wrong)
    if not wrong and function in FIND_ALL and _CAN_BE_EMPTY.search(pattern):
        narrowest, widest = _parse(pattern).getwidth()
        if narrowest == 0 < widest:
            yield gap(call, "empty match")


def _parse(pattern: str) -> Any:
    """Return CPython's own reading of *pattern*; one that it refuses reads as nothing.

    It is private to the standard library, and the only thing that knows how much a pattern can match without matching:
    running a model's pattern here, even on an empty text, could take for ever.
    """
    try:
        return _parser.parse(pattern)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    except (re.error, OverflowError, RecursionError):
        return _parser.parse("")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _replacement(call: ast.Call, text: str | None, pattern: str | None) -> Iterator[Gap]:
    if text is None or not re.fullmatch(SAFE_REPLACEMENT, text):
        yield gap(call, "replacement")
    elif pattern is not None and len(pattern) <= _LONGEST_PATTERN and "\\" in text:
        numbers = [int(number) for number in re.findall(r"\\(?:g<)?(\d+)", text.replace("\\\\", ""))]
        if numbers and max(numbers) >= _parse(pattern).state.groups:
            yield gap(call, "group")


# ---------------------------------------------------------------- dates

_DIRECTIVE = re.compile(r"%([a-zA-Z%])")
_WHOLE_DATES = tuple(
    map(frozenset, ("Ymd", "Ybd", "YBd", "ymd", "ybd", "yBd", "Yj", "yj", "YUw", "YWw", "YUa", "YWa", "GVu", "c", "x"))
)
_WHOLE_TIMES = tuple(map(frozenset, ("HM", "IMp", "c", "X")))
_TIME = frozenset("HIMSfp")


def date_formats(names: Names) -> Iterator[Gap]:
    """Yield formats of strptime() with which the engine would fail or lose the time."""
    for call, path in names.calls:
        if path in ("datetime.datetime.strptime", "time.strptime"):
            text = _text(names, _argument(call, 1, "format"))
            if text is not None and not _is_readable(frozenset(_DIRECTIVE.findall(text))):
                yield gap(call, "strptime")


def _is_readable(given: frozenset[str]) -> bool:
    whole_date = any(needed <= given for needed in _WHOLE_DATES)
    whole_time = not given & _TIME or any(needed <= given for needed in _WHOLE_TIMES)
    return whole_date and whole_time
