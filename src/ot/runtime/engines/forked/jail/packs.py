"""What stands for packs and their functions inside a program: names, and a way to ask the server."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Mapping
from functools import cache
from types import FrameType
from typing import Any

from ot.runtime.engines.forked.jail.channel import Channel, MessageTooLarge, loads
from ot.runtime.engines.forked.jail.values import ArgumentEncoder
from ot_sdk.converter import kind_of
from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.tagged import decode

MAX_NAME = 200
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
        """Return what ``pack.name`` is."""
        if name in self._called.get(pack, ()):
            return Function(self, pack, name)
        if (pack, name) not in self._known:
            self._known[pack, name] = self._looked_up(pack, name)
        return self._known[pack, name]

    def _looked_up(self, pack: str, name: str) -> Any:
        answer = _answer(self._channel.ask({"t": "member", "p": pack, "f": name[:MAX_NAME]}))
        if "path" in answer:
            return _project_path()(answer["path"])
        return Function(self, pack, name) if "function" in answer else decode(answer["v"])

    def call(self, pack: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value of a call, waiting for it."""
        try:
            answer = self._channel.ask(_call(pack, name, args, kwargs) | self.line())
        except MessageTooLarge as error:
            raise ValueError(f"{pack}.{name}(): {error}") from None
        return _readable(decode(_answer(answer)["v"]))

    async def call_later(
        self, pack: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], line: dict[str, int]
    ) -> Any:
        """Return the value of a call in *line*, letting others of the same event loop work meanwhile."""
        answer = await self._channel.ask_later(_call(pack, name, args, kwargs) | line)
        return _readable(decode(_answer(answer)["v"]))

    def line(self) -> dict[str, int]:
        """Return, for a message, in which line of the program that is running the call stands."""
        # As inspect.currentframe(), whose import would cost every program.
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - as above
        for _ in range(MAX_FRAMES):
            if frame is None or frame.f_code.co_filename == self._channel.program:
                break
            frame = frame.f_back
        else:
            return {}
        return {"l": frame.f_lineno} if frame else {}


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
    """Return what a tool gave; text that is JSON also as what it says."""
    return JsonString(value) if kind_of(value) is str and value.lstrip()[:1] in ("{", "[") else value


def _value(text: JsonString) -> Any:
    """Return what *text* says; the text itself where it is not JSON."""
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
        """Return what can be awaited for the value."""
        return self.__door.call_later(self.__pack, self.__tool, args, kwargs, self.__door.line())

    @property
    def __name__(self) -> str:
        return self.__tool

    def __repr__(self) -> str:
        return f"<tool {self.__pack}.{self.__tool}>"


def later(function: Any) -> Any:
    """Return what an awaited call calls: a tool's own way not to wait, anything else as it is."""
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
