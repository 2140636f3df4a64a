"""Plain data: what may cross between a program, the server and a tool, checked by exact type and counted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar

import anyio.to_thread

from ot.errors import DataTooLarge, NotPlainData
from ot.values.jsonable import utf8
from ot.values.parts import NotSerializable, TooManyParts, count_parts
from ot_sdk.converter import MAX_DEPTH, MAX_NODES, Converter, Rule, kind_of
from ot_sdk.tagged import LARGEST, SMALLEST

QUICK_NODES = 2_000
"""How many nodes are looked at on the event loop; more are looked at in a thread."""
KIND_NAMES = {"PackHandle": "pack", "MontyClassProxy": "object of a class", "MontyStdTypeProxy": "builtin"}
"""What a program would call some types."""


class _Copy(Converter):
    """Copies one value, counting its parts, its bytes and about the characters of its JSON."""

    def __init__(self, where: str, max_bytes: int, max_nodes: int = MAX_NODES) -> None:
        super().__init__(max_nodes)
        self._where = where
        self._bytes = max_bytes
        self._max_nodes = max_nodes
        self.chars = 0

    def of(self, value: Any) -> Any:
        # Half a copy of a value that is then refused would keep the collector, and with it the server, busy.
        try:
            count_parts(value, self._max_nodes)
        except TooManyParts:
            raise self.too_many(value) from None
        except NotSerializable:
            raise self.too_deep(value) from None
        return self.convert(value)

    def take(self, size: int, chars: int) -> None:
        """Count *size* bytes, which are about *chars* characters as JSON, and a comma."""
        self._bytes -= size
        self.chars += chars + 1
        if self._bytes < 0:
            raise self._too_large("limits.value_bytes")

    def small(self, value: Any, _depth: int) -> Any:
        self.take(8, 4)
        return value

    def number(self, value: int, _depth: int) -> int:
        self.take(8 + value.bit_length() // 8, 4)
        return value

    def text(self, value: str, _depth: int) -> str:
        self.take(len(value), len(value) + 2)
        return utf8(value)

    def data(self, value: bytes, _depth: int) -> bytes:
        self.take(len(value), len(value) + 2)
        return value

    def to_list(self, value: Any, depth: int) -> list[Any]:
        self.take(16, 2)
        return self.elements(value, depth)

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        self.check_depth(value, depth)
        self.take(16, 2)
        return {self.convert(key, depth + 1): self.convert(item, depth + 1) for key, item in value.items()}

    def other(self, value: Any, depth: int) -> Any:
        kind = kind_of(value)
        if issubclass(kind, PurePath) and kind.__module__.startswith("pathlib"):
            self.take(64, 4)
            return utf8(str(value))
        name = KIND_NAMES.get(kind.__name__, kind.__name__)
        what = f"{name} is not plain data: only text, numbers, lists, dicts and the like can cross"
        raise NotPlainData(self._where, what)

    def too_deep(self, value: Any) -> Exception:
        return NotPlainData(self._where, f"the value is nested more than {MAX_DEPTH} levels deep")

    def too_many(self, value: Any) -> Exception:
        return self._too_large("limits.value_parts")

    def _too_large(self, limit: str) -> Exception:
        return DataTooLarge(self._where, f"the value is too large to cross ({limit})")

    rules: ClassVar[Mapping[type, Rule | None]] = {
        **dict.fromkeys((type(None), bool, float, Decimal), small),
        **dict.fromkeys((datetime.datetime, datetime.date, datetime.time, datetime.timedelta), small),
        int: number,
        str: text,
        bytes: data,
        list: to_list,
        tuple: lambda self, value, depth: tuple(self.to_list(value, depth)),
        set: lambda self, value, depth: set(self.to_list(value, depth)),
        frozenset: lambda self, value, depth: frozenset(self.to_list(value, depth)),
        dict: mapping,
    }


def plain_copy(value: Any, *, where: str, max_bytes: int, max_nodes: int = MAX_NODES) -> Any:
    """Return a copy of *value* that shares nothing with it, made of plain data only.

    Shared parts are counted each time they occur, so a small graph that unfolds to billions of nodes is refused.

    Raises:
        NotPlainData: Some part is not plain data, or it is too deep or too large.
    """
    return _Copy(where, max_bytes, max_nodes).of(value)


async def plain_data(value: Any, *, where: str, max_bytes: int, max_parts: int = MAX_NODES) -> tuple[Any, int]:
    """Return ``plain_copy(value)``, made in a thread when it is more than a moment's work, and its characters.

    The characters are those of its text, or about those of its JSON.

    Raises:
        NotPlainData: As ``plain_copy``.
    """
    if type(value) is str and len(value) <= max_bytes:  # as most values are
        return utf8(value), len(value)
    copy = _Copy(where, max_bytes, max_parts)
    copied = await where_quick(value, partial(copy.of, value))
    return copied, len(value) if type(value) is str else copy.chars


async def plain_arguments(
    tool: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, max_bytes: int, max_parts: int = MAX_NODES
) -> tuple[list[Any], dict[str, Any]]:
    """Return copies of a call's arguments, made in a thread when they are together more than a moment's work.

    Raises:
        NotPlainData: As ``plain_copy``; the text names the argument.
    """

    for name in kwargs:
        _require_text(tool, name)
    if _are_small(args, max_bytes) and _are_small(kwargs.values(), max_bytes):  # as most are
        return list(args), dict(kwargs)

    def copy(value: Any, which: object) -> Any:
        return plain_copy(value, where=f"{tool}() argument {which}", max_bytes=max_bytes, max_nodes=max_parts)

    def copies() -> tuple[list[Any], dict[str, Any]]:
        given = [copy(value, number) for number, value in enumerate(args, 1)]
        return given, {key: copy(value, f"'{key[:50]}'") for key, value in kwargs.items()}

    return await where_quick([*args, *kwargs.values()], copies)


def _are_small(values: Iterable[Any], max_bytes: int) -> bool:
    """Return whether each of *values* is its own plain copy: a short text, a number or the like."""
    for value in values:
        kind = kind_of(value)
        if kind is str:
            if len(value) > max_bytes or not value.isascii():
                return False
        elif not (value is None or kind is bool or kind is float or (kind is int and SMALLEST <= value <= LARGEST)):
            return False
    return True


def _require_text(tool: str, name: str) -> None:
    """Refuse a name that is not valid text: unlike a value it is not repaired, since two names could become one."""
    if not name.isascii() and utf8(name) != name:
        raise NotPlainData(f"{tool}() argument {name[:50]!a}", "the name is not text: it holds an unpaired surrogate")


async def where_quick[T](value: Any, work: Callable[[], T]) -> T:
    """Return the result of *work* on *value*: directly if there is little to do, else in a thread."""
    try:
        count_parts(value, QUICK_NODES)
    except TooManyParts:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except NotSerializable:
        pass  # the copy meets what is too deep as soon as this did
    return work()
