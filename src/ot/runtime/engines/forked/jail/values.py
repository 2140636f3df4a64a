"""A program's values as tagged JSON: strictly for a tool's arguments, with a text for anything else in a result."""

from __future__ import annotations

from collections import deque
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from enum import Enum
from types import MappingProxyType
from typing import Any

from ot_sdk.converter import kind_of
from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.tagged import BASES, Encoder

LISTED = (deque, range, KeysView, ValuesView, ItemsView)
ITERATORS = (type(iter([])), map, filter, zip, enumerate, reversed, type(_ for _ in ()))
MAX_TEXT = 2000


def _dataclass_fields(value: Any) -> dict[str, Any]:
    names: list[str] = list(value.__dataclass_fields__)
    return {name: getattr(value, name, None) for name in names}


class ArgumentEncoder(Encoder):
    """Encodes what a program gives to a tool: plain data, and what stands for plain data without a doubt."""

    def other(self, value: Any, depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        # Nothing here asks an object what it would like to be: its answer could be anything.
        kind = kind_of(value)
        if issubclass(kind, Enum):
            return self.convert(value.value, depth + 1)
        if _is_path(kind):
            return self.convert(str(value), depth + 1)
        for base, write in BASES:
            if issubclass(kind, base):
                return write(self, value, depth)
        if kind is MappingProxyType:
            return self.mapping(value, depth)
        if issubclass(kind, LISTED) or kind in ITERATORS:
            return self.elements(value, depth)
        raise NotPlain("", kind.__name__)


def _is_path(kind: type[Any]) -> bool:
    # pathlib itself is loaded only where a program has done so.
    return any(base.__name__ == "PurePath" and base.__module__.startswith("pathlib") for base in kind.__mro__)


class ResultEncoder(ArgumentEncoder):
    """Encodes what a program comes to; whatever has no plain form becomes a text about it."""

    def other(self, value: Any, depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        kind = kind_of(value)
        if hasattr(kind, "__dataclass_fields__"):
            return self.mapping(_dataclass_fields(value), depth)
        try:
            return super().other(value, depth)
        except NotPlain as error:
            if error.path or isinstance(error, TooDeep | TooMany):
                raise
        if issubclass(kind, Iterator) and kind.__module__ in ("itertools", "builtins"):
            return self.elements(value, depth)
        if issubclass(kind, Mapping) and kind.__module__.startswith(("collections", "types")):
            return self.mapping(value, depth)
        return self.convert(describe(value), depth + 1)

    def pair(self, key: Any, item: Any, depth: int) -> list[Any]:
        """Return a key, or a text about one that has no plain form, and its value."""
        return super().pair(key if type(key) in self.rules else describe(key), item, depth)


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
