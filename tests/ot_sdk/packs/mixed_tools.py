# ruff: noqa: ASYNC110, ASYNC240, T201 - does what packs do, good and bad
"""A pack with async tools beside plain ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import ot_sdk

__all__ = ["aecho", "afail", "aprint", "arows", "ask", "ask_wrongly", "echo", "forever", "late", "running", "wrapped"]

running_now: set[str] = set()
most_at_once: list[int] = []


def not_a_tool() -> str:
    """Public, but not named in ``__all__``."""
    return "never"


def echo(value: Any) -> Any:
    """Return *value*."""
    return value


async def aecho(value: Any) -> Any:
    """Return *value*."""
    await asyncio.sleep(0)
    return value


async def afail(kind: str) -> str:
    """Fail in ways that an event loop takes badly."""
    if kind == "cancel itself":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)
    if kind == "stop the loop":
        asyncio.get_running_loop().stop()
        return "stopped"
    kinds: dict[str, type[BaseException]] = {
        each.__name__: each for each in (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
    }
    raise kinds[kind]


async def aprint(value: str) -> str:
    """Print, here and in a task of its own."""
    print("here", value)
    await asyncio.create_task(_print_in_task(value))
    return value


async def _print_in_task(value: str) -> None:
    print("in a task", value)


async def arows(count: int, gate: str) -> Iterator[str]:
    """Return rows one by one, all but the first once the file *gate* is there."""
    return _rows(count, gate)


def _rows(count: int, gate: str) -> Iterator[str]:
    print("first row")
    yield "y" * 100
    while not Path(gate).exists():
        time.sleep(0.001)
    yield from ["y" * 100] * (count - 1)


async def ask(tool: str, arguments: dict[str, Any]) -> Any:
    """Return another tool's value."""
    return await ot_sdk.acall_tool(tool, **arguments)


async def ask_wrongly() -> Any:
    """Call another tool in the way that would block the event loop."""
    return ot_sdk.call_tool("other.tool")


async def forever() -> NoReturn:
    """Never return."""
    print("waiting")
    try:
        while True:
            await asyncio.sleep(60)
    finally:
        print("cleaned up")


async def late(gate: str) -> str:
    """Return although cancelled, once the file *gate* is there."""
    print("waiting")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            while not Path(gate).exists():
                await asyncio.sleep(0.001)
            return "late"


def wrapped(value: Any) -> Any:
    """Return a coroutine though this is no ``async def``."""
    return aecho(value)


def running(gate: str) -> int:
    """Wait until the file *gate* is there; return how many calls of this tool ran at once, at most."""
    running_now.add(threading.current_thread().name)
    most_at_once.append(len(running_now))
    print("running")
    while not Path(gate).exists():
        time.sleep(0.001)
    running_now.discard(threading.current_thread().name)
    return max(most_at_once)
