"""A program's value as JSON types, each other type having one documented text form."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any, ClassVar

from ot.values.parts import TooDeeplyNested, TooManyParts
from ot_sdk.converter import MAX_DEPTH, MAX_NODES, Converter, Rule, kind_of
from ot_sdk.tagged import LARGEST, SMALLEST

MAX_INT_BITS = 14_000
"""An int of more bits has no decimal text that Python would write; it is written in hexadecimal."""
CONSTANTS = {None: "null", True: "true", False: "false"}
INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}

Describe = Callable[[Any], Any]


def describe_type(value: Any) -> str:
    """Return the text for an object that has no form of its own."""
    return f"<{type(value).__name__}>"


def jsonable(value: Any, describe: Describe = describe_type, *, max_nodes: int = MAX_NODES) -> Any:
    """Return *value* as JSON types; *describe* gives the JSON types or text of what is not plain data.

    Raises:
        NotSerializable: It is too deep or too large; a graph counts each time it is reached.
    """
    return _Jsonable(describe, max_nodes).convert(value)


def utf8(text: str) -> str:
    """Return text that UTF-8 can encode: an unpaired surrogate is not data."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class _Jsonable(Converter):
    def __init__(self, describe: Describe, max_nodes: int) -> None:
        super().__init__(max_nodes)
        self._describe = describe

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self.check_depth(value, depth)
        shown: dict[str, Any] = {}
        for key, item in value.items():
            text = utf8(key if type(key) is str else self._key(key, depth))
            # Two keys must never become one silently: 1 and "1" are "1 (int)" and "1".
            while text in shown or (type(key) is not str and text in value):
                text = f"{text} ({type(key).__name__})"
            shown[text] = self.convert(item, depth + 1)
        return shown

    def _key(self, key: Any, depth: int) -> str:
        kind = kind_of(key)
        if key is None or kind is bool:
            return CONSTANTS[key]
        if kind is tuple or kind is frozenset:
            return str(tuple(self.convert(key, depth + 1)))
        return str((self.rules.get(kind) or _Jsonable.other)(self, key, MAX_DEPTH))

    def other(self, value: Any, depth: int) -> Any:
        if issubclass(kind_of(value), PurePath):
            return str(value)
        if value is ...:
            return "Ellipsis"
        if isinstance(value, type):
            return f"<class '{value.__name__}'>"
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"[:1000]
        described = self._describe(value)
        return described if type(described) is str else self.convert(described, depth + 1)

    def too_deep(self, value: Any) -> Exception:
        return TooDeeplyNested()

    def too_many(self, value: Any) -> Exception:
        return TooManyParts()

    rules: ClassVar[Mapping[type, Rule | None]] = {
        type(None): None,
        bool: None,
        str: lambda _self, value, _depth: utf8(value),
        int: lambda _self, value, _depth: value if SMALLEST <= value <= LARGEST else _big_int(value),
        float: lambda _self, value, _depth: value if math.isfinite(value) else INFINITE.get(value, "NaN"),
        dict: mapping,
        list: Converter.elements,
        tuple: Converter.elements,
        set: lambda self, value, depth: self.elements(_order(value), depth),
        frozenset: lambda self, value, depth: self.elements(_order(value), depth),
        bytes: lambda _self, value, _depth: base64.b64encode(value).decode(),
        **dict.fromkeys(
            (datetime.datetime, datetime.date, datetime.time), lambda _self, value, _depth: value.isoformat()
        ),
        **dict.fromkeys((datetime.timedelta, Decimal, complex), lambda _self, value, _depth: str(value)),
    }


def _big_int(value: int) -> str:
    return str(value) if value.bit_length() <= MAX_INT_BITS else hex(value)


def _order(values: Iterable[Any]) -> list[Any]:
    try:
        return sorted(values)
    except (TypeError, ArithmeticError):  # of different types, or a Decimal that is not a number
        return list(values)
