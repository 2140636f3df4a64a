"""A program's values as tagged JSON: strictly for a tool's arguments, with a text for anything else in a result."""

from __future__ import annotations

from collections import deque
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any

from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.tagged import MAX_DEPTH, WRITERS, Encoder, kind_of

SCALARS = frozenset({str, type(None), bool, int, float})
BASES: tuple[type, ...] = (
    str, int, float, dict, list, tuple, set, frozenset, bytes, datetime, date, time, timedelta, Decimal,
)  # fmt: skip
LISTED = (deque, range, KeysView, ValuesView, ItemsView)
ITERATORS = (type(iter([])), map, filter, zip, enumerate, reversed, type(_ for _ in ()))
MAX_TEXT = 2000


def _dataclass_fields(value: Any) -> dict[str, Any]:
    names: list[str] = list(value.__dataclass_fields__)
    return {name: getattr(value, name, None) for name in names}


class ArgumentEncoder(Encoder):
    """Encodes what a program gives to a tool: plain data, and what stands for plain data without a doubt."""

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return *value* as JSON types.

        Raises:
            NotPlain: It is no plain data, or too deep or too large.
        """
        kind: type[Any] = kind_of(value)
        if kind in SCALARS or kind in WRITERS:
            return super().encode(value, depth)
        if depth > MAX_DEPTH:
            raise TooDeep("", kind.__name__)
        return self.other(value, kind, depth)

    def other(self, value: Any, kind: type[Any], depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        # Nothing here asks an object what it would like to be: its answer could be anything.
        if issubclass(kind, Enum):
            return self.encode(value.value, depth + 1)
        if _is_path(kind):
            return self.encode(str(value), depth + 1)
        for base in BASES:
            if issubclass(kind, base):
                return self.encode(_as(base, value), depth + 1)
        if issubclass(kind, bytearray | memoryview):
            return self.data(bytes(value))
        if kind is MappingProxyType:
            return self.mapping(value, depth)
        if issubclass(kind, LISTED) or kind in ITERATORS:
            return self.elements(value, depth)
        raise NotPlain("", kind.__name__)


def _is_path(kind: type[Any]) -> bool:
    # pathlib itself is loaded only where a program has done so.
    return any(base.__name__ == "PurePath" and base.__module__.startswith("pathlib") for base in kind.__mro__)


def _as(base: type, value: Any) -> Any:
    if base is datetime:
        return datetime.combine(datetime.date(value), datetime.timetz(value))
    if base in (date, time, timedelta):
        return _rebuilt(base, value)
    return {str: str.__str__, int: int.__int__, float: float.__float__}.get(base, base)(value)


def _rebuilt(base: type, value: Any) -> Any:
    if base is timedelta:
        return timedelta(value.days, value.seconds, value.microseconds)
    known: Any = base
    return known.fromisoformat(known.isoformat(value))


class ResultEncoder(ArgumentEncoder):
    """Encodes what a program comes to; whatever has no plain form becomes a text about it."""

    def other(self, value: Any, kind: type[Any], depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        if hasattr(kind, "__dataclass_fields__"):
            return self.mapping(_dataclass_fields(value), depth)
        try:
            return super().other(value, kind, depth)
        except NotPlain as error:
            if error.path or isinstance(error, TooDeep | TooMany):
                raise
        if issubclass(kind, Iterator) and kind.__module__ in ("itertools", "builtins"):
            return self.elements(value, depth)
        if issubclass(kind, Mapping) and kind.__module__.startswith(("collections", "types")):
            return self.mapping(value, depth)
        return self.encode(describe(value), depth + 1)

    def _pair(self, key: Any, item: Any, depth: int) -> list[Any]:
        kind = kind_of(key)
        plain = key if kind in SCALARS or kind in WRITERS else describe(key)
        return super()._pair(plain, item, depth)


def describe(value: Any) -> str:
    """Return a short text for an object that has no plain form."""
    if isinstance(value, type):
        return f"<class '{value.__name__}'>"
    kind = kind_of(value)
    if issubclass(kind, BaseException):
        return f"{kind.__name__}: {value}"[:MAX_TEXT]
    if value is ...:
        return "Ellipsis"
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return f"<{kind.__name__} object>"
    # An address tells nobody anything, and differs from run to run.
    text = str(value)[:MAX_TEXT]
    return f"<{kind.__name__}>" if " at 0x" in text else text
