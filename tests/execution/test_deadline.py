"""A run's clock stands still while a person is asked, and every timeout made of it with it."""

from __future__ import annotations

import asyncio
import time

import pytest

from ot.execution.deadline import Deadline

pytestmark = pytest.mark.anyio

LONG = 600.0
"""Longer than a test may take: what waits so long has not been ended."""


async def test_a_timeout_ends_at_the_deadline_or_earlier() -> None:
    for deadline, at_most in ((Deadline.after(0.05), LONG), (Deadline.after(LONG), 0.05), (Deadline.after(-1), LONG)):
        with pytest.raises(TimeoutError):
            async with deadline.timeout(at_most):
                await asyncio.sleep(LONG)


async def test_while_it_is_paused_it_moves_on_with_the_clock() -> None:
    deadline = Deadline.after(10)
    at = deadline.at
    with deadline.pause():
        left = deadline.seconds_left
        await asyncio.sleep(0.05)
        assert deadline.seconds_left == pytest.approx(left, abs=0.01)
        assert deadline.at > at + 0.04
    assert at + 0.04 < deadline.at < at + LONG
    moved = deadline.at
    await asyncio.sleep(0.02)
    assert deadline.at == moved


async def test_a_timeout_outlasts_a_pause_and_then_goes_on_with_what_was_left() -> None:
    deadline = Deadline.after(0.3)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with deadline.timeout():
            with deadline.pause():
                await asyncio.sleep(0.6)
            assert time.monotonic() - started >= 0.59
            await asyncio.sleep(LONG)
    assert 0.85 < time.monotonic() - started < LONG


async def test_pauses_may_overlap() -> None:
    deadline = Deadline.after(0.2)

    async def ask(seconds: float) -> None:
        with deadline.pause():
            await asyncio.sleep(seconds)

    async with deadline.timeout():
        await asyncio.gather(ask(0.3), ask(0.1), ask(0.5))
    assert 0 < deadline.seconds_left <= 0.2


async def test_a_timeout_that_begins_in_a_pause_begins_to_count_after_it() -> None:
    deadline = Deadline.after(LONG)
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        with deadline.pause():
            asked.set()
            await go_on.wait()

    asking = asyncio.ensure_future(ask())
    await asked.wait()
    started = time.monotonic()
    asyncio.get_running_loop().call_later(0.2, go_on.set)
    with pytest.raises(TimeoutError):
        async with deadline.timeout(0.1):
            await asyncio.sleep(LONG)
    assert 0.25 < time.monotonic() - started
    await asking


async def test_a_timeout_that_ran_out_is_not_brought_back_by_a_pause() -> None:
    deadline = Deadline.after(0.01)
    with pytest.raises(TimeoutError):
        async with deadline.timeout():
            try:
                await asyncio.sleep(LONG)
            finally:
                with deadline.pause():
                    pass
