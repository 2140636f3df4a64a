"""Lets ``await`` and asyncio take what has come already: the value of a tool that was called before."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from types import GeneratorType
from typing import Any, cast

ROW = "finished-value"
"""The name of this in the table of tolerances."""
ONE_BY_ONE = "gather() takes calls one by one, not a list of them: put a star before it, asyncio.gather(*calls)"
LISTS = (list, tuple, set, GeneratorType)

used: set[str] = set()
"""Whether the program gave a value where something to wait for is expected."""


class Finished:
    """A value that is there, as something to await."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self._value


def awaitable(value: Any) -> Any:
    """Return *value* itself if it can be awaited, else what gives it when awaited."""
    if _can_wait(value):
        return value
    used.add(ROW)
    return Finished(value)


def no_list(value: Any) -> Any:
    """Return what is given to ``gather`` alone, unless it is a list whose star was forgotten."""
    if _is_list(value):
        raise TypeError(ONE_BY_ONE)
    return value


def accept_values() -> None:
    """Let the functions of asyncio that take something to wait for take values too."""
    import asyncio  # noqa: PLC0415 - costly, and only for programs that name it

    if hasattr(asyncio.gather, "__wrapped__"):
        return
    asyncio.gather = _gather(asyncio.gather)
    for name in ("create_task", "ensure_future", "run", "shield", "wait_for"):
        setattr(asyncio, name, _accepting(getattr(asyncio, name), _coroutine))
    for name in ("as_completed", "wait"):
        setattr(asyncio, name, _accepting(getattr(asyncio, name), _coroutines(asyncio.ensure_future)))
    group = asyncio.TaskGroup
    group.create_task = _accepting(group.create_task, _coroutine, place=1)


def _can_wait(value: Any) -> bool:
    return hasattr(cast("object", type(value)), "__await__")


def _is_list(value: Any) -> bool:
    return isinstance(value, LISTS)


async def _value(value: Any) -> Any:
    return value


def _coroutine(value: Any) -> Any:
    if _can_wait(value):
        return value
    used.add(ROW)
    return _value(value)


def _gather(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def gather(*things: Any, **options: Any) -> Any:
        for thing in things:
            # A list that was given whole: nobody would ever wait for what is in it.
            if isinstance(thing, GeneratorType) or (_is_list(thing) and any(map(_can_wait, thing))):
                raise TypeError(ONE_BY_ONE)
        return function(*map(_coroutine, things), **options)

    return gather


def _accepting(function: Callable[..., Any], convert: Callable[[Any], Any], place: int = 0) -> Callable[..., Any]:
    @wraps(function)
    def accepting(*args: Any, **options: Any) -> Any:
        given = [convert(value) if number == place else value for number, value in enumerate(args)]
        return function(*given, **options)

    return accepting


def _coroutines(task: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(things: Any) -> Any:
        if not _is_list(things):
            return things
        return [thing if _can_wait(thing) else task(_coroutine(thing)) for thing in things]

    return convert
