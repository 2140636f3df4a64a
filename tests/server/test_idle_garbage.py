"""Garbage is looked for while nobody waits for a reply."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from ot.server import idle_garbage
from ot.server.idle_garbage import NEW_OBJECTS, PARTS_BEFORE_ALL, IdleGarbage

WAIT_SECONDS = 30.0

pytestmark = pytest.mark.anyio


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


def make_garbage() -> None:
    for _ in range(2 * NEW_OBJECTS):
        ring: list[Any] = []
        ring.append(ring)


async def end_of_pause() -> None:
    """Wait until what was due after the same pause has been done."""
    for seconds in (idle_garbage.PAUSE_SECONDS, idle_garbage.READ_SECONDS):
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, done.set)
        async with asyncio.timeout(WAIT_SECONDS):
            await done.wait()


async def test_garbage_is_looked_for_once_after_a_pause_in_which_nobody_waits() -> None:
    garbage = IdleGarbage()
    with collections() as seen:
        make_garbage()
        garbage.collect_soon(())
        garbage.collect_soon(())
        assert seen == []
        await end_of_pause()
        assert seen == [1]
        garbage.collect_soon(())  # nothing new is there
        await end_of_pause()
        assert seen == [1]


async def test_it_is_not_looked_for_while_somebody_waits_but_after_the_next_reply() -> None:
    garbage, waiting = IdleGarbage(), {7}
    with collections() as seen:
        make_garbage()
        garbage.collect_soon(waiting)
        await end_of_pause()
        assert seen == []
        waiting.clear()
        garbage.collect_soon(waiting)
        await end_of_pause()
        assert seen == [1]


async def test_all_objects_are_looked_through_now_and_then_and_not_soon_again_where_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    garbage = IdleGarbage()
    monkeypatch.setattr(idle_garbage, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(idle_garbage, "LEAST_RATIO", 1_000_000)
    with collections() as seen:
        for _ in range(3 * PARTS_BEFORE_ALL):
            make_garbage()
            garbage.collect_soon(())
            await end_of_pause()
    assert seen == [1] * PARTS_BEFORE_ALL + [2] + [1] * (2 * PARTS_BEFORE_ALL - 1)
