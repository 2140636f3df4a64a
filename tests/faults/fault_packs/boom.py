"""Tools that end in every way but a good one."""

from __future__ import annotations

import asyncio
import os
from typing import NoReturn

pack = "boom"

__all__ = ["aexit", "leak", "raise_", "surrogate", "unprintable"]


class Bottom(BaseException):
    """Not even an Exception."""


class Unprintable(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


KINDS: dict[str, type[BaseException]] = {
    "Bottom": Bottom,
    "CancelledError": asyncio.CancelledError,
    "Exception": Exception,
    "GeneratorExit": GeneratorExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "MemoryError": MemoryError,
    "RecursionError": RecursionError,
    "StopAsyncIteration": StopAsyncIteration,
    "StopIteration": StopIteration,
    "SystemExit": SystemExit,
}


def raise_(kind: str) -> NoReturn:
    """Raise, in a thread."""
    raise KINDS[kind]("boom")


async def aexit(kind: str) -> NoReturn:
    """Raise, on the event loop."""
    raise KINDS[kind]("boom")


def unprintable() -> NoReturn:
    """Raise what cannot be shown."""
    raise Unprintable


def leak() -> NoReturn:
    """Raise with the server's secret in message, cause and note."""
    secret = os.environ.get("FAULTS_CANARY", "")
    error = RuntimeError(f"cannot sign in with {secret}")
    error.add_note(secret)
    raise error from ValueError(secret)


def surrogate(where: str) -> str:
    """Return or raise a text that has no UTF-8."""
    if where == "error":
        raise ValueError("lone \udcff")
    return "lone \udcff"
