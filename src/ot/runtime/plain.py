"""Plain data: what may cross between a program, the server and a tool, checked by exact type and counted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import Any

import anyio.to_thread

from ot.errors import DataTooLarge, NotPlainData
from ot.output.presentable import NotPresentable, TooManyParts, count_parts, kind_of

MAX_DEPTH = 64
MAX_NODES = 2_000_000
QUICK_NODES = 2_000
"""How many nodes are looked at on the event loop; more are looked at in a thread."""

FIXED = frozenset(
    {type(None), bool, float, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, Decimal}
)
"""Types of a small, bounded size."""
SEQUENCES: dict[type, Callable[[Iterator[Any]], Any]] = {list: list, tuple: tuple, set: set, frozenset: frozenset}


def size_of(value: Any) -> int | None:
    """Return the rough size in bytes of a scalar, or nothing when the value is not a plain scalar."""
    kind = kind_of(value)
    if kind in FIXED:
        return 8
    if kind is str or kind is bytes:
        return len(value)
    if kind is int:
        return 8 + value.bit_length() // 8
    return 64 if issubclass(kind, PurePath) and kind.__module__.startswith("pathlib") else None


class Counter:
    """Counts what one value holds, against its limits."""

    def __init__(self, where: str, max_bytes: int, max_nodes: int = MAX_NODES) -> None:
        self._where = where
        self._bytes = max_bytes
        self._nodes = self.max_nodes = max_nodes
        self.chars = 0

    def add(self, size: int, chars: int = 2) -> None:
        """Count one node of *size* bytes, which is about *chars* characters as JSON.

        Raises:
            DataTooLarge: The value is larger than allowed.
        """
        self._nodes -= 1
        self._bytes -= size
        self.chars += chars + 1  # a comma
        if self._nodes < 0 or self._bytes < 0:
            raise self.too_large()

    def too_large(self) -> DataTooLarge:
        """Return the error for a value that holds too much."""
        limit = "limits.value_bytes" if self._bytes < 0 else "limits.value_parts"
        return DataTooLarge(self._where, f"the value is too large to cross ({limit})")

    def refuse(self, value: Any) -> NotPlainData:
        """Return the error for a value that is not plain."""
        return NotPlainData(
            self._where,
            f"{kind_name(value)} is not plain data: only text, numbers, lists, dicts and the like can cross",
        )

    def too_deep(self) -> NotPlainData:
        """Return the error for a value that is nested too deeply."""
        return NotPlainData(self._where, f"the value is nested more than {MAX_DEPTH} levels deep")


def kind_name(value: Any) -> str:
    """Return what kind of thing *value* is, in a program's words."""
    name = type(value).__name__
    return {"PackHandle": "pack", "MontyClassProxy": "object of a class", "MontyStdTypeProxy": "builtin"}.get(
        name, name
    )


async def plain_data(value: Any, *, where: str, max_bytes: int, max_parts: int = MAX_NODES) -> tuple[Any, int]:
    """Return ``plain_copy(value)``, made in a thread when it is more than a moment's work, and its characters.

    The characters are those of its text, or about those of its JSON.

    Raises:
        NotPlainData: As ``plain_copy``.
    """
    counter = Counter(where, max_bytes, max_parts)
    copy = await _where_quick(value, partial(_counted_copy, value, counter))
    return copy, len(value) if kind_of(value) is str else counter.chars


async def plain_arguments(
    tool: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, max_bytes: int, max_parts: int = MAX_NODES
) -> tuple[list[Any], dict[str, Any]]:
    """Return copies of a call's arguments, made in a thread when they are together more than a moment's work.

    Raises:
        NotPlainData: As ``plain_copy``; the text names the argument.
    """

    for name in kwargs:
        _require_text(tool, name)

    def copied(value: Any, which: object) -> Any:
        return _counted_copy(value, Counter(f"{tool}() argument {which}", max_bytes, max_parts))

    def copies() -> tuple[list[Any], dict[str, Any]]:
        given = [copied(value, number) for number, value in enumerate(args, 1)]
        return given, {key: copied(value, f"'{key[:50]}'") for key, value in kwargs.items()}

    return await _where_quick([*args, *kwargs.values()], copies)


def _require_text(tool: str, name: str) -> None:
    """Refuse a name that is not valid text: unlike a value it is not repaired, since two names could become one."""
    if not name.isascii() and _text(name) != name:
        raise NotPlainData(f"{tool}() argument {name[:50]!a}", "the name is not text: it holds half a character")


async def _where_quick[T](value: Any, work: Callable[[], T]) -> T:
    """Return what *work* makes of *value*: here when there is little to do, in a thread when there is much."""
    try:
        count_parts(value, QUICK_NODES)
    except TooManyParts:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except NotPresentable:
        pass  # the copy meets what is too deep as soon as this did
    return work()


def _counted_copy(value: Any, counter: Counter) -> Any:
    # Half a copy of a value that is then refused would keep the collector, and with it the server, busy.
    try:
        count_parts(value, counter.max_nodes)
    except TooManyParts:
        raise counter.too_large() from None
    except NotPresentable:
        raise counter.too_deep() from None
    return _copy(value, counter, 0)


def plain_copy(value: Any, *, where: str, max_bytes: int, max_nodes: int = MAX_NODES) -> Any:
    """Return a copy of *value* that shares nothing with it, made of plain data only.

    Shared parts are counted each time they occur, so a small graph that unfolds to billions of nodes is refused.

    Raises:
        NotPlainData: Some part is not plain data, or it is too deep or too large.
    """
    return _copy(value, Counter(where, max_bytes, max_nodes), 0)


def _copy(value: Any, counter: Counter, depth: int) -> Any:
    size, kind = size_of(value), kind_of(value)
    if size is not None:
        is_text = kind is str
        counter.add(size, size + 2 if is_text or kind is bytes else 4)
        return _text(value) if is_text or isinstance(value, PurePath) else value
    if depth >= MAX_DEPTH:
        raise counter.too_deep()
    counter.add(16)
    if kind is dict:
        return {_copy(k, counter, depth + 1): _copy(v, counter, depth + 1) for k, v in value.items()}
    build = SEQUENCES.get(kind)
    if build is None:
        raise counter.refuse(value)
    return build(_copy(item, counter, depth + 1) for item in value)


def _text(value: str | PurePath) -> str:
    """Return text that UTF-8 can hold: a path means itself as text, and half a character is nobody's data."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
