"""Regular expressions and date formats, written out in a program, that the portable engine reads differently."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from re import _parser  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownVariableType]
from typing import Any

from ot.errors import Gap
from ot.runtime.engines.portable.gaps.names import Names
from ot.runtime.engines.portable.gaps.rules import FIND_ALL, PATTERNS, SAFE_REPLACEMENT, TAKE_PATTERN, gap

# Parsing a longer pattern would cost more than the run; nobody writes one by hand.
_LONGEST_PATTERN = 500
_CAN_BE_EMPTY = re.compile(r"[*{|]|(?<!\()\?")


def regular_expressions(names: Names) -> Iterator[Gap]:
    """Yield patterns and replacements that mean something else here than in CPython."""
    for call, path in names.calls:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        compiled = _compiled(names, call.func) if method in FIND_ALL else None
        function = method if compiled else path.removeprefix("re.")
        if compiled or (path.startswith("re.") and function in TAKE_PATTERN):
            pattern = _text(names, _argument(compiled or call, 0, "pattern"))
            yield from _checked_pattern(call, pattern, function)
            if function == "sub":
                text = _text(names, _argument(call, 0 if compiled else 1, "repl"))
                yield from _replacement(call, text, pattern)


def _compiled(names: Names, method: ast.expr) -> ast.Call | None:
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


def _checked_pattern(call: ast.Call, pattern: str | None, function: str) -> Iterator[Gap]:
    if pattern is None or len(pattern) > _LONGEST_PATTERN:
        return
    wrong = [rule for wrong, rule in PATTERNS.items() if re.search(wrong, pattern)]
    yield from (gap(call, rule) for rule in wrong)
    if not wrong and function in FIND_ALL and _CAN_BE_EMPTY.search(pattern):
        narrowest, widest = _parsed(pattern).getwidth()
        if narrowest == 0 < widest:
            yield gap(call, "empty match")


def _parsed(pattern: str) -> Any:
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
        if numbers and max(numbers) >= _parsed(pattern).state.groups:
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
