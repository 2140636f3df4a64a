"""The messages of a forked child, read by the server: whatever they hold, they are data or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, NoReturn, cast

import anyio.to_thread
import orjson

from ot.errors import DataTooLarge
from ot.nearest_names import MAX_NAME
from ot.runtime.engines.engine import NO_VALUE, Place
from ot.values.parts import Unread, has_many_parts, holds_more
from ot_sdk import tagged
from ot_sdk.errors import NotPlain
from ot_sdk.tagged import decode

QUICK_BYTES = 1 << 15
"""Messages up to this size are read on the event loop, larger ones in a thread."""
QUICK_PARTS = 2000
TAG = b'"$ot"'
VALUE_FIRST, AFTER_VALUE = b'{"v":', b',"magic":'
"""How the child writes the message that its value is in."""
MAX_LINE = 10_000_000
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading a malformed message raises."""


FILES = "<files>"
"""Stands for the pack of a step of Python's own file functions; no pack can have that name."""
FILE_FIRST = b'{"t":"file",'
"""How the child begins such a message; what follows its first line is data."""


class Request(NamedTuple):
    """What a program asks for: a call, or without arguments what a member of a pack is."""

    pack: str
    name: str
    args: list[Any] | None
    kwargs: dict[str, Any]
    line: int | None = None
    """Where in the program it says that the call stands."""
    task: int | None = None
    """Which task of a program with a given time it says makes the call."""
    inside: Place | None = None
    """Where in a saved program it says that the call stands."""


def read_request(payload: bytes, most_parts: int) -> Request:
    """Return the request that a message holds.

    Raises:
        DataTooLarge: It holds more than *most_parts*.
        ValueError: It holds none; so do the other errors of ``MALFORMED``.
    """
    if payload.startswith(FILE_FIRST):
        return _file_request(payload)
    if has_many_parts(payload, most_parts):
        raise DataTooLarge("a call", f"its arguments hold more than {most_parts:,} parts (limits.value_parts)")
    message = _message(payload)
    pack, name = message["p"], message["f"]
    if not _are_names((pack, name)):
        raise ValueError("a call names no tool")
    if message["t"] == "member":
        return Request(pack, name, None, {})
    names, values, args = message["k"], [*message["w"]], [*message["a"]]
    if TAG in payload:  # without one they are what JSON says; how deep they are is seen when they are copied
        names, values, args = decode(names), [*map(decode, values)], [*map(decode, args)]
    if message["t"] != "call" or not _are_names(names):
        raise ValueError("no such request")
    line = said if type(said := message.get("l")) is int and 0 < said <= MAX_LINE else None
    task = said if type(said := message.get("j")) is int and 0 <= said <= MAX_LINE else None
    inside = read_place(message["i"]) if "i" in message else None
    return Request(pack, name, args, dict(zip(names, values, strict=True)), line, task, inside)


def read_place(said: Any) -> Place:
    """Return the place in a saved program that a message tells; raise ValueError if it is none."""
    name, line = said
    if not _are_names((name,)) or type(line) is not int or not 0 < line <= MAX_LINE:
        raise ValueError("no place in a saved program")
    return name, line


def _file_request(payload: bytes) -> Request:
    head, _, data = payload.partition(b"\n")
    if len(head) > QUICK_BYTES:
        raise ValueError("a malformed path")
    message = _message(head)
    step, arguments = message["f"], message["k"]
    if not _are_names((step,)) or type(arguments) is not dict:
        raise ValueError("no such request")
    given = cast("dict[str, Any]", arguments)
    return Request(FILES, step, [], given | ({"data": data} if data else {}))


def file_answer(value: Any) -> bytes:
    """Return the answer to a step on files: one line of JSON, then the data if there is any."""
    data = cast("dict[str, Any]", value).pop("data", b"") if isinstance(value, dict) else b""
    return orjson.dumps({"v": value}) + b"\n" + data


def _are_names(names: Iterable[Any]) -> bool:
    for name in names:  # noqa: SIM110 - every call comes here
        if type(name) is not str or len(name) > MAX_NAME:
            return False
    return True


def read_notice(payload: bytes, most_parts: int) -> tuple[dict[str, Any], Any]:
    """Return the message's content, and the program's value if it has one, unread if it is large.

    Raises:
        ValueError: As ``read_request``.
    """
    if has_many_parts(payload, most_parts):
        return _large_notice(payload)
    message = _message(payload)
    if "v" not in message:
        return message, NO_VALUE
    # Without a tag in it a value is what JSON says, however large.
    return message, decode(message["v"]) if TAG in payload else message["v"]


def _large_notice(payload: bytes) -> tuple[dict[str, Any], Unread]:
    """Return a message whose value is large: that comes first, and is not looked at."""
    rest = payload.rfind(AFTER_VALUE)
    if not payload.startswith(VALUE_FIRST) or rest < 0 or len(payload) - rest > QUICK_BYTES:
        raise ValueError("a message holds too many parts")
    return _message(b"{" + payload[rest + 1 :]), Unread(payload[len(VALUE_FIRST) : rest])


def _message(payload: bytes) -> dict[str, Any]:
    try:
        message = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        if "Not enough memory" in error.msg:  # it has no other way to say so
            raise MemoryError(error.msg) from None
        raise
    if type(message) is not dict:
        raise ValueError("a message is not an object")
    return message  # pyright: ignore[reportUnknownVariableType] - of JSON types


def _tried[T](read: Callable[[bytes], T], payload: bytes) -> Callable[[], T]:
    try:
        value = read(payload)
    except (*MALFORMED, MemoryError) as error:
        return partial(_raise, error)
    return lambda: value


def _raise(error: Exception) -> NoReturn:
    raise error


async def read_in_thread[T](read: Callable[[bytes], T], payload: bytes) -> Callable[[], T]:
    """Return a function that gives the value that *read* made of *payload* in a thread, or raises what it raised."""
    return await anyio.to_thread.run_sync(_tried, read, payload, abandon_on_cancel=True)


async def value_answer(value: Any) -> bytes:
    """Return the answer to a call that returned *value*."""
    if type(value) is str and value.isascii():  # as most values are
        return orjson.dumps({"v": value})
    if holds_more(value, QUICK_PARTS):
        return await anyio.to_thread.run_sync(_value_answer, value, abandon_on_cancel=True)
    return _value_answer(value)


def _value_answer(value: Any) -> bytes:
    try:
        return orjson.dumps({"v": tagged.encode(value)})
    except NotPlain as error:
        return failure_answer(TypeError(str(error)))


def failure_answer(error: Exception) -> bytes:
    """Return the answer to a call that failed: a builtin exception's name and text."""
    text = str(error.args[0]) if error.args else ""
    return orjson.dumps({"e": [type(error).__name__, text.encode("utf-8", "replace").decode()]})
