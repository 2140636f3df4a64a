"""Garbage is looked for between replies."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from ot.server import idle_garbage
from ot.server.idle_garbage import MANY_OBJECTS, NEW_OBJECTS, PARTS_BEFORE_ALL, IdleGarbage

WAIT_SECONDS = 30.0

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def collect_all_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No earlier collection of this process puts off the next one."""
    monkeypatch.setattr(IdleGarbage, "_next_full", 0.0)


@contextmanager
def collections() -> Generator[list[int]]:
    """Yield the generations that are collected from now on; Python itself collects nothing meanwhile."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.collect()
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000)
    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)


def make_garbage(count: int = 2 * NEW_OBJECTS) -> None:
    for _ in range(count):
        ring: list[Any] = []
        ring.append(ring)


async def end_of_pause() -> None:
    """Wait until what was due after the same pause has been done, which a timer that is early prolongs."""
    for seconds in (idle_garbage.PAUSE_SECONDS, *[idle_garbage.READ_SECONDS] * 3):
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, done.set)
        async with asyncio.timeout(WAIT_SECONDS):
            await done.wait()


async def test_garbage_is_looked_for_once_after_a_pause_in_which_nobody_waits() -> None:
    garbage = IdleGarbage(lambda: False)
    with collections() as seen, garbage:
        make_garbage()
        garbage.collect_soon()
        garbage.collect_soon()
        assert seen == []
        await end_of_pause()
        assert seen == [1]
        garbage.collect_soon()  # nothing new is there
        await end_of_pause()
        assert seen == [1]


async def test_the_pause_begins_anew_with_every_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage, replied, collected = IdleGarbage(lambda: False), list[float](), list[float]()

    def reply() -> None:
        replied.append(time.monotonic())
        garbage.collect_soon()

    with collections(), garbage:
        monkeypatch.setattr(gc, "collect", lambda _: collected.append(time.monotonic()))
        make_garbage()
        reply()
        asyncio.get_running_loop().call_later(idle_garbage.PAUSE_SECONDS / 2, reply)
        await end_of_pause()
        await end_of_pause()
    assert len(collected) == 1
    assert collected[0] - replied[1] >= idle_garbage.PAUSE_SECONDS


async def test_garbage_is_collected_after_a_reply_and_not_while_a_client_waits() -> None:
    waiting = [7]
    garbage, other = IdleGarbage(lambda: False), IdleGarbage(lambda: bool(waiting))
    with collections() as seen, garbage, other:
        make_garbage()
        garbage.collect_soon()
        await end_of_pause()
        assert seen == []
        waiting.clear()
        garbage.collect_soon()
        await end_of_pause()
        assert seen == [1]


async def test_a_connection_that_has_ended_waits_for_nothing_and_collects_nothing() -> None:
    ended, garbage = IdleGarbage(lambda: True), IdleGarbage(lambda: False)
    with collections() as seen, garbage:
        with ended:
            make_garbage()
            ended.collect_soon()
        await end_of_pause()
        assert seen == []
        garbage.collect_soon()
        await end_of_pause()
        assert seen == [1]


async def test_full_collections_are_rare_and_rarer_if_they_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    garbage = IdleGarbage(lambda: False)
    monkeypatch.setattr(idle_garbage, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(idle_garbage, "LEAST_RATIO", 1_000_000)
    with collections() as seen, garbage:
        for _ in range(3 * PARTS_BEFORE_ALL):
            make_garbage()
            garbage.collect_soon()
            await end_of_pause()
    assert seen == [1] * PARTS_BEFORE_ALL + [2] + [1] * (2 * PARTS_BEFORE_ALL - 1)


@pytest.mark.parametrize(("waits", "parts"), [(False, 5), (True, 20)])
async def test_garbage_is_collected_even_if_a_client_always_waits(
    monkeypatch: pytest.MonkeyPatch, *, waits: bool, parts: int
) -> None:
    monkeypatch.setattr(idle_garbage, "PARTS_WITHOUT_PAUSE", 5)
    monkeypatch.setattr(idle_garbage, "THRESHOLDS", (700, 10, 20))
    monkeypatch.setattr(idle_garbage, "LEAST_RATIO", 0)
    garbage = IdleGarbage(lambda: waits)
    with collections() as seen, garbage:
        for _ in range(parts + 2):
            make_garbage(2 * MANY_OBJECTS)
            garbage.collect_soon()
    assert seen == [*[1] * parts, 2, 1]
