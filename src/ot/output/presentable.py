"""Turns a program's value into JSON types, each other type having one documented text form."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePath
from typing import Any

MAX_DEPTH = 64
MAX_NODES = 2_000_000
MAX_INT_BITS = 14_000
"""An int of more bits has no decimal text that Python would write; it is written in hexadecimal."""

CONTAINERS = frozenset({dict, list, tuple, set, frozenset})

Describe = Callable[[Any], Any]


class NotPresentable(ValueError):
    """The value is nested too deeply, or holds too much."""


class TooManyParts(NotPresentable):
    """The value holds too much."""


def kind_of(value: object) -> type:
    """Return the exact type of *value*, which cannot pretend to be of another."""
    return type(value)


def count_parts(value: Any, left: int = MAX_NODES, depth: int = 0) -> int:
    """Return how much of *left* remains once every part of *value* is counted; a graph counts each time it is reached.

    Nothing is built: what will be refused must not first fill the memory, which the collector would then walk
    through again and again while the whole server waits.

    Raises:
        NotPresentable: It is too deep or too large.
    """
    if kind_of(value) not in CONTAINERS:
        return left
    if depth > MAX_DEPTH:
        raise NotPresentable(f"the value is nested more than {MAX_DEPTH} levels deep")
    left -= len(value)
    if left < 0:
        raise TooManyParts("the value holds too many parts to be written out")
    for item in value.values() if kind_of(value) is dict else value:
        if type(item) in CONTAINERS:
            left = count_parts(item, left, depth + 1)
    return left


def describe_type(value: Any) -> str:
    """Return the text for an object that has no form of its own."""
    return f"<{type(value).__name__}>"


class Presenter:
    """Makes one value presentable, counting what it holds."""

    def __init__(self, describe: Describe = describe_type, *, max_nodes: int = MAX_NODES) -> None:
        """Ask *describe* for the JSON types or text of what is not plain data."""
        self._describe = describe
        self._left = max_nodes

    def present(self, value: Any, depth: int = 0) -> Any:
        """Return *value* as JSON types.

        Raises:
            NotPresentable: It is too deep or too large; a graph counts each time it is reached.
        """
        self._left -= 1
        if self._left < 0:
            raise TooManyParts("the value holds too many parts to be written out")
        if depth > MAX_DEPTH:
            raise NotPresentable(f"the value is nested more than {MAX_DEPTH} levels deep")
        kind = kind_of(value)
        if kind is dict:
            return self._dict(value, depth)
        if kind in (list, tuple):
            return [self.present(item, depth + 1) for item in value]
        if kind in (set, frozenset):
            return [self.present(item, depth + 1) for item in _ordered(value)]
        return self._scalar(value, kind, depth)

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for key, item in value.items():
            text = _utf8(key if type(key) is str else self._key(key, depth))
            # Two keys must never become one silently: 1 and "1" are "1 (int)" and "1".
            while text in shown or (type(key) is not str and text in value):
                text = f"{text} ({type(key).__name__})"
            shown[text] = self.present(item, depth + 1)
        return shown

    def _key(self, key: Any, depth: int) -> str:
        if key is None or type(key) is bool:
            return {None: "null", True: "true", False: "false"}[key]
        if type(key) in (tuple, frozenset):
            return str(tuple(self.present(key, depth + 1)))
        kind = kind_of(key)
        shown = self._scalar(key, kind, MAX_DEPTH)
        return shown if type(shown) is str else str(shown)

    def _scalar(self, value: Any, kind: type, depth: int) -> Any:
        if value is None or kind is bool:
            return value
        if kind is str:
            return _utf8(value)
        if kind is int:
            return value if -(1 << 63) <= value < 1 << 64 else _big_int(value)
        if kind is float:
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        return self._other(value, kind, depth)

    def _other(self, value: Any, kind: type, depth: int) -> Any:
        if kind is bytes:
            return base64.b64encode(value).decode()
        if kind in (datetime.datetime, datetime.date, datetime.time):
            return value.isoformat()
        if kind in (datetime.timedelta, Decimal, complex) or issubclass(kind, PurePath):
            return str(value)
        if value is ...:
            return "Ellipsis"
        if isinstance(value, type):
            return f"<class '{value.__name__}'>"
        if isinstance(value, BaseException):
            return f"{kind.__name__}: {value}"[:1000]
        described = self._describe(value)
        return described if type(described) is str else self.present(described, depth + 1)


def _big_int(value: int) -> int | str:
    return str(value) if value.bit_length() <= MAX_INT_BITS else hex(value)


def _utf8(text: str) -> str:
    """Return text that can be written as UTF-8, whatever surrogates it held."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _ordered(values: Any) -> list[Any]:
    try:
        return sorted(values)
    except (TypeError, ArithmeticError):  # of different types, or a Decimal that is not a number
        return list(values)
