"""What stands for packs and their functions inside a program: names, a way to ask the server, and their values."""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from enum import Enum
from functools import cache
from types import CoroutineType, FrameType, MappingProxyType
from typing import Any

from ot.runtime.engines.forked.jail import code
from ot.runtime.engines.forked.jail.channel import Channel, MessageTooLarge, loads
from ot_sdk.converter import kind_of
from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.tagged import BASES, Encoder, decode

MAX_NAME = 200
SAVED = ".py"
"""What ends the name under which a saved program is compiled."""
MAX_FRAMES = 50
"""How far up the program's own code is looked for: a library may stand in between."""


class Door:
    """Turns calls of a program into messages, and answers into values and exceptions."""

    def __init__(self, channel: Channel, called: Mapping[str, Collection[str]]) -> None:
        """Ask through *channel*; what *called* names is only ever called, and need not be looked up."""
        self._channel = channel
        self._called = called
        self._known: dict[tuple[str, str], Any] = {}

    def member(self, pack: str, name: str) -> Any:
        """Return the member ``pack.name``."""
        if name in self._called.get(pack, ()):
            return Function(self, pack, name)
        if (pack, name) not in self._known:
            answer = _answer(self._channel.ask({"t": "member", "p": pack, "f": name[:MAX_NAME]}))
            if "path" in answer:
                found = _project_path()(answer["path"])
            else:
                found = Function(self, pack, name) if "function" in answer else decode(answer["v"])
            self._known[pack, name] = found
        return self._known[pack, name]

    def call(self, pack: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value of a call, waiting for it."""
        try:
            answer = self._channel.ask(_call(pack, name, args, kwargs) | self.line())
        except MessageTooLarge as error:
            raise ValueError(f"{pack}.{name}(): {error}") from None
        if "saved" in (found := _answer(answer)):
            value: Any = self._enter(found)
            return code.finish(value) if isinstance(value, CoroutineType) else value  # pyright: ignore[reportUnknownArgumentType] - of any value
        return _readable(decode(found["v"]))

    async def call_later(
        self, pack: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], line: dict[str, Any]
    ) -> Any:
        """Return the value of a call in *line*, letting others of the same event loop work meanwhile."""
        answer = await self._channel.ask_later(_call(pack, name, args, kwargs) | line)
        if "saved" in (found := _answer(answer)):
            value: Any = self._enter(found)
            return await value if isinstance(value, CoroutineType) else value  # pyright: ignore[reportUnknownVariableType] - as above
        return _readable(decode(found["v"]))

    def _enter(self, found: dict[str, Any]) -> Any:
        """Return what a saved program returns: the server has answered with its text and its arguments."""
        saved: dict[str, Any] = found["saved"]
        file = saved["name"] + SAVED
        if file not in self._channel.saved:
            names = {"__name__": saved["name"], "__builtins__": builtins}
            door = Door(self._channel, saved["called"])
            names |= {name: Pack(door, name) for name in saved["packs"]}
            code.run_definitions(saved["source"], saved["awaited"], file, names)
            self._channel.saved[file] = names
        return self._channel.saved[file][saved["function"]](**decode(found["v"]))

    def line(self) -> dict[str, Any]:
        """Return, for a message, in which line of the program that is running the call stands, and of a saved one."""
        # As inspect.currentframe(), whose import would cost every program.
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - as above
        inside: dict[str, Any] = {}
        for _ in range(MAX_FRAMES):
            if frame is None or frame.f_code.co_filename == self._channel.program:
                break
            if not inside and frame.f_code.co_filename in self._channel.saved:
                inside = {"i": [frame.f_code.co_filename.removesuffix(SAVED), frame.f_lineno]}
            frame = frame.f_back
        else:
            return inside
        return inside | ({"l": frame.f_lineno} if frame else {})


def find_place(error: BaseException, saved: Collection[str]) -> list[Any] | None:
    """Return the innermost line of a saved program that *error* went through, with its name."""
    place, trace = None, error.__traceback__
    while trace is not None:
        if (file := trace.tb_frame.f_code.co_filename) in saved:
            place = [file.removesuffix(SAVED), trace.tb_lineno]
        trace = trace.tb_next
    return place


class JsonString(str):
    """Text that is JSON, as servers answer it: a text as key reads its value, where plain text could only fail."""

    def __getitem__(self, key: Any) -> Any:
        value: Any = _value(self) if issubclass(type(key), str) else self
        if value is not self:
            return value[key]
        found = super().__getitem__(key)
        return JsonElement(found, self, key) if isinstance(key, int) else found

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "items", "keys", "values") and issubclass(type(value := _value(self)), dict):
            return getattr(value, name)
        raise AttributeError(f"'str' object has no attribute '{name}'")


class JsonElement(str):
    """A character of JSON text: with a text as key it is the element of the list at its index."""

    def __new__(cls, character: str, text: JsonString, index: int) -> JsonElement:
        element = super().__new__(cls, character)
        element.__dict__.update(text=text, index=index)
        return element

    def __getitem__(self, key: Any) -> Any:
        rows: Any = _value(self.__dict__["text"]) if issubclass(type(key), str) else None
        return rows[self.__dict__["index"]][key] if issubclass(type(rows), list) else super().__getitem__(key)


def _readable(value: Any) -> Any:
    """Return a tool's value; text that is JSON also gives access to its keys."""
    return JsonString(value) if kind_of(value) is str and value.lstrip()[:1] in ("{", "[") else value


def _value(text: JsonString) -> Any:
    """Return *text* parsed as JSON, or the text itself."""
    known = text.__dict__
    if "value" not in known:
        try:
            known["value"] = loads(text)
        except (ValueError, RecursionError):
            known["value"] = text
    return known["value"]


class Pack:
    """A pack, as a program sees it."""

    __slots__ = ("__door", "__name")

    def __init__(self, door: Door, name: str) -> None:
        object.__setattr__(self, "_Pack__door", door)
        object.__setattr__(self, "_Pack__name", name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'{name}' is not in pack '{self.__name}'")
        return self.__door.member(self.__name, name)  # pyright: ignore[reportUnknownVariableType] - set by __init__

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a pack cannot be changed: {self.__name}.{name}")

    def __repr__(self) -> str:
        return f"<pack {self.__name}>"


class Function:
    """A tool, as a program sees it: called it waits, under ``await`` and in ``gather`` it does not."""

    __slots__ = ("__door", "__pack", "__tool")

    def __init__(self, door: Door, pack: str, name: str) -> None:
        self.__door, self.__pack, self.__tool = door, pack, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__door.call(self.__pack, self.__tool, args, kwargs)

    def later(self, *args: Any, **kwargs: Any) -> Any:
        """Return an awaitable of the value."""
        return self.__door.call_later(self.__pack, self.__tool, args, kwargs, self.__door.line())

    @property
    def __name__(self) -> str:
        return self.__tool

    def __repr__(self) -> str:
        return f"<tool {self.__pack}.{self.__tool}>"


def later(function: Any) -> Any:
    """Return the function of an awaited call: a tool's own awaitable form, anything else unchanged."""
    return function.later if type(function) is Function else function


@cache
def _project_path() -> type[Any]:
    from pathlib import PosixPath  # noqa: PLC0415 - the zygote loads it when it has time

    return type("ProjectPath", (PosixPath,), {"__module__": "proj"})


def _call(pack: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    where = f"{pack}.{name[:MAX_NAME]}() argument"
    if any(len(key) > MAX_NAME for key in kwargs):
        raise TypeError(f"{where}: a parameter's name has at most {MAX_NAME} characters")
    given = [_argument(value, f"{where} {number}") for number, value in enumerate(args, 1)]
    named = {key: _argument(value, f"{where} '{key[:50]}'") for key, value in kwargs.items()}
    # Names of parameters may be any text, also one that JSON cannot hold.
    return {"t": "call", "p": pack, "f": name[:MAX_NAME], "a": given, "k": ArgumentEncoder().convert(list(named)),
            "w": list(named.values())}  # fmt: skip


def _argument(value: Any, where: str) -> Any:
    try:
        return ArgumentEncoder().convert(value)
    except TooMany:
        raise ValueError(f"{where}: the value is too large to cross (limits.value_bytes)") from None
    except TooDeep:
        raise TypeError(f"{where}: the value is nested too deeply") from None
    except NotPlain as error:
        what = f"{where}{error.path}: {error.type_name}"
        raise TypeError(f"{what} is not plain data: only text, numbers, lists, dicts and the like can cross") from None


def _answer(payload: bytes) -> dict[str, Any]:
    answer = loads(payload.decode())
    if "e" in answer:
        raise _exception(*answer["e"])
    return answer


def _exception(kind: str, message: str) -> Exception:
    found = getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        return found(message)
    return RuntimeError(message)


LISTED = (deque, range, KeysView, ValuesView, ItemsView)
ITERATORS = (type(iter([])), map, filter, zip, enumerate, reversed, type(_ for _ in ()))
MAX_TEXT = 2000


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
    """Encodes a program's value; anything without a plain form becomes a text about it."""

    def other(self, value: Any, depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        kind = kind_of(value)
        if hasattr(kind, "__dataclass_fields__"):
            names: list[str] = list(value.__dataclass_fields__)
            return self.mapping({name: getattr(value, name, None) for name in names}, depth)
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
