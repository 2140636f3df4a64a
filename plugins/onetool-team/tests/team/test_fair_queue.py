"""Whose run begins: everyone waits in a line of their own, and nobody holds up another."""

from __future__ import annotations

import asyncio

import pytest

from onetool_team.fair_queue import FairQueue, NoTurn
from onetool_team.settings import Quotas
from proxied.desk import until

pytestmark = pytest.mark.anyio


def queue_of(places: int = 4, **quotas: float) -> FairQueue:
    given = Quotas.model_validate({"in_flight": 4, "waiting": 100, "runs_per_minute": 1_000_000, **quotas})
    return FairQueue(lambda: given, lambda: places)


async def test_lines_are_served_in_turn_however_long_one_of_them_is() -> None:
    queue, served = queue_of(places=1), list[str]()

    async def one(principal: str) -> None:
        await queue.enter(principal)
        served.append(principal)
        await asyncio.sleep(0)
        queue.leave(principal)

    assert queue.try_enter("ann")
    floods = [asyncio.ensure_future(one("flood")) for _ in range(20)]
    await until(lambda: queue.waiting == 20)
    others = [asyncio.ensure_future(one(name)) for name in ("bob", "cid", "bob")]
    await until(lambda: queue.waiting == 23)
    queue.leave("ann")
    await asyncio.gather(*floods, *others)
    assert served[:6] == ["flood", "bob", "cid", "flood", "bob", "flood"]
    assert (queue.under_way, queue.waiting) == (0, 0)


async def test_a_principal_never_has_more_under_way_than_its_quota_while_places_are_free() -> None:
    queue = queue_of(places=10, in_flight=3)
    assert [queue.try_enter("ann") for _ in range(5)] == [True, True, True, False, False]
    assert queue.try_enter("bob")


async def test_all_together_have_no_more_places_than_the_engine() -> None:
    queue = queue_of(places=2)
    assert [queue.try_enter(name) for name in ("ann", "bob", "cid")] == [True, True, False]


async def test_a_full_line_refuses_and_says_what_to_do() -> None:
    queue = queue_of(places=1, waiting=1)
    assert queue.try_enter("ann")
    waits = asyncio.ensure_future(queue.enter("ann"))
    await until(lambda: queue.waiting == 1)
    with pytest.raises(NoTurn, match=r"1 of your runs are waiting .*Send it again"):
        await queue.enter("ann")
    queue.leave("ann")
    await waits


async def test_a_run_that_waits_too_long_is_refused_and_takes_no_place() -> None:
    queue = queue_of(places=1, queue_seconds=0.01)
    assert queue.try_enter("ann")
    with pytest.raises(NoTurn, match="was not begun"):
        await queue.enter("bob")
    queue.leave("ann")
    assert (queue.under_way, queue.waiting) == (0, 0)


async def test_whoever_leaves_while_waiting_or_at_the_last_moment_takes_no_place() -> None:
    queue = queue_of(places=1)
    assert queue.try_enter("ann")
    waits = [asyncio.ensure_future(queue.enter("bob")) for _ in range(2)]
    await until(lambda: queue.waiting == 2)
    waits[0].cancel()
    await until(lambda: queue.waiting == 1)
    queue.leave("ann")  # the turn of the other has come, and it does not know it yet
    waits[1].cancel()
    assert [type(one) for one in await asyncio.gather(*waits, return_exceptions=True)] == [asyncio.CancelledError] * 2
    assert (queue.under_way, queue.waiting) == (0, 0)


async def test_runs_begin_no_faster_than_the_quota_of_a_minute_once_a_burst_is_over() -> None:
    queue = queue_of(places=100, in_flight=2, waiting=3, runs_per_minute=60_000)
    begun = list[float]()

    async def one() -> None:
        if not queue.try_enter("ann"):
            await queue.enter("ann")
        begun.append(asyncio.get_running_loop().time())
        queue.leave("ann")

    for _ in range(100):
        await one()
    # A burst of five, and then a run a millisecond.
    assert begun[-1] - begun[4] >= 0.09


async def test_lines_of_those_who_have_gone_are_forgotten() -> None:
    queue = queue_of(places=1)
    for number in range(3000):
        assert queue.try_enter(f"p{number}")
        queue.leave(f"p{number}")
    assert len(queue._lines) <= 1001  # pyright: ignore[reportPrivateUsage] - what it keeps is the subject
