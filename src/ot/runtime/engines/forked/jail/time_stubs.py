"""What stands for the clock and for chance inside a program that is recorded or replayed."""

# ruff: noqa: PLC0415 - only these runs need what is imported here
# It replaces what the standard library has.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ot.runtime.engines.forked.jail.channel import Channel
from ot.runtime.engines.given_time import GivenTime


def install_time(given: GivenTime, channel: Channel) -> None:
    """Let the program see *given*, and tell the server with each call which of the program's tasks makes it."""
    import random

    for name in ("queue", "concurrent.futures.thread"):  # they keep the real clock, to wait by
        __import__(name)
    random.seed(given.seed)
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed(given.seed)
    os.urandom = random._urandom = random.Random(given.seed).randbytes  # what uuid and secrets draw from
    _install_tasks(given, channel)
    _install_clock(given)
    _install_dates(given)


def _install_clock(given: GivenTime) -> None:
    def seconds() -> float:
        return given.read() / 1e9

    def sleep(seconds: float, /) -> None:
        real_sleep(0 if given.skips and seconds >= 0 else seconds)
        given.move_to(given.passed + int(seconds * 1e9))

    def give_default(name: str, place: int, default: Any) -> None:
        function = getattr(time, name)

        def call(*args: Any) -> Any:
            return function(*args, *([default()] if len(args) == place else []))

        setattr(time, name, call)

    real_sleep, time.sleep = time.sleep, sleep
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, seconds)
        setattr(time, f"{name}_ns", given.read)
    for name in ("gmtime", "localtime", "ctime"):
        give_default(name, 0, seconds)
    give_default("strftime", 1, time.localtime)


def _install_dates(given: GivenTime) -> None:
    import datetime

    def now(cls: Any, *tz: Any, **named: Any) -> Any:
        return cls.fromtimestamp(given.read() / 1e9, *tz, **named)

    def utcnow(cls: Any) -> Any:
        return now(cls, datetime.UTC).replace(tzinfo=None)

    datetime.date = _stand_in(datetime.date, today=now)
    datetime.datetime = _stand_in(datetime.datetime, now=now, today=now, utcnow=utcnow)


def _stand_in(real: Any, **methods: Any) -> Any:
    """Return a class in the place of *real*, whose instances are of *real* itself."""

    class StandIn(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real) if cls is found else super().__instancecheck__(instance)

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return real.__new__(real if cls is found else cls, *args, **kwargs)

    own = {name: classmethod(method) for name, method in methods.items()}
    found = StandIn(real.__name__, (real,), {"__new__": new, "__module__": "datetime", **own})
    return found


def _install_tasks(given: GivenTime, channel: Channel) -> None:
    import asyncio

    real_sleep, monotonic = asyncio.sleep, time.monotonic
    ask, ask_file, ask_later = channel.ask, channel.ask_file, channel.ask_later
    tasks: list[Any] = []

    async def sleep(delay: float, result: Any = None) -> Any:
        due = given.passed + int(max(delay, 0) * 1e9)
        found = await real_sleep(delay, result)
        given.move_to(due)
        return found

    def add_task(message: Any) -> Any:
        task = asyncio.current_task() if asyncio._get_running_loop() else None  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType] - it alone does not raise
        if task not in tasks:
            tasks.append(task)
        return message | {"j": tasks.index(task)}

    def ask_and_move(message: Any, data: bytes = b"") -> bytes:
        answer = ask_file(message, data)
        given.take_stamp(answer)
        return answer

    def ask_and_move_later(message: Any) -> Any:
        future = ask_later(add_task(message))
        future.add_done_callback(lambda done: None if done.cancelled() else given.take_stamp(done.result()))
        return future

    asyncio.BaseEventLoop.time = lambda _loop: monotonic()  # loops wait by the real clock
    asyncio.sleep = asyncio.tasks.sleep = sleep
    channel.ask, channel.ask_file, channel.ask_later = (
        lambda message: ask(add_task(message)),
        ask_and_move,
        ask_and_move_later,
    )
