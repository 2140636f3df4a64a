"""How many runs one principal may have: the rest wait or are told when to come again, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from http_server import call
from onetool_team import rate_window
from onetool_team.admission import Admission
from onetool_team.fair_queue import FairQueue
from onetool_team.http.answers import send_json
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send
from onetool_team.http.run_entrance import RunEntrance
from onetool_team.identity import SCOPE_KEY, Identity
from onetool_team.rate_window import RateWindow
from onetool_team.settings import Quotas
from ot.server.drain import Drain
from pace import PATIENCE, TURNS
from proxied.desk import until
from state.redis_process import RedisProcess, running_redis
from team.team_bed import KnownByName, TeamBed, post, principal, team

pytestmark = pytest.mark.anyio

MOST_TURNS = 2 * TURNS
ATTEMPTS = 3
SEARCHES = """
import asyncio
await asyncio.gather(*[file.search(pattern="(a|b|c|d|e|f|g|h|i|j)+zq") for _ in range(32)])
"""
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a Redis that only the machine keeps waiting be no lost one; those that are killed here refuse at once."""
    monkeypatch.setattr(rate_window, "ANSWER_SECONDS", PATIENCE)


class HeldApp:
    """An application whose answers wait until a test lets them go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        assert (await receive())["body"]
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def behind(app: AsgiApp, places: int = 100, window: RateWindow | None = None, **given: Any) -> AsgiApp:
    quotas = Quotas.model_validate(given)
    return KnownByName(
        Admission(app, FairQueue(lambda: quotas, lambda: places), window or RateWindow(), lambda: quotas, 0.0)
    )


@contextlib.asynccontextmanager
async def sent(*requests: Awaitable[Any]) -> AsyncGenerator[Sequence[asyncio.Future[Any]]]:
    """Yield what is under way, and let nothing of it outlive the block."""
    tasks = [asyncio.ensure_future(one) for one in requests]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_over_the_limit_is_429_with_retry_after_and_words_that_say_what_to_do() -> None:
    app = HeldApp()
    app.go.set()
    door = behind(app, runs_per_minute=2)
    assert [(await post(door, "ann", call("1"))).status for _ in range(2)] == [200, 200]
    refused = await post(door, "ann", call("1", number=5))
    assert refused.status == 429 and 1 <= int(refused.headers[b"retry-after"]) <= 60
    assert refused.reply["id"] == 5
    error = refused.reply["error"]
    assert "2 runs within a minute" in error["message"] and "again in" in error["message"]
    assert error["data"]["retry_after_seconds"] == int(refused.headers[b"retry-after"])
    assert (await post(door, "bob", call("1"))).status == 200


async def test_only_tool_calls_count() -> None:
    app = HeldApp()
    app.go.set()
    door = behind(app, runs_per_minute=1)
    assert [(await post(door, "ann", LIST)).status for _ in range(5)] == [200] * 5
    assert (await post(door, "ann", call("1"))).status == 200
    assert (await post(door, "ann", call("1"))).status == 429
    assert (await post(door, "ann", LIST)).status == 200


async def test_who_floods_waits_in_a_line_of_their_own_and_is_refused_when_it_is_full() -> None:
    app = HeldApp()
    door = behind(app, in_flight=2, waiting=3)
    async with sent(*(post(door, "flood", call("1")) for _ in range(8))) as flood:
        await until(lambda: sum(task.done() for task in flood) == 3)
        assert {task.result().status for task in flood if task.done()} == {429}
        assert app.begun == 2
        async with sent(post(door, "ann", call("1"))):
            await until(lambda: app.begun == 3)
        app.go.set()
        answers = await asyncio.wait_for(asyncio.gather(*flood), PATIENCE)
        assert Counter(answer.status for answer in answers) == {200: 5, 429: 3}


async def test_a_sender_who_leaves_while_waiting_is_not_served() -> None:
    app = HeldApp()
    quotas = Quotas(in_flight=1)
    queue = FairQueue(lambda: quotas, lambda: 1)
    door = KnownByName(Admission(app, queue, RateWindow(), lambda: quotas, 0.0))
    async with sent(post(door, "ann", call("1")), post(door, "ann", call("2"))) as requests:
        await until(lambda: queue.waiting == 1)
        requests[1].cancel()
        await until(lambda: queue.waiting == 0)
        app.go.set()
        assert (await requests[0]).status == 200
    assert app.begun == 1 and queue.under_way == 0


async def test_who_waits_when_the_server_begins_to_end_is_sent_elsewhere_and_who_is_in_is_served() -> None:
    begun, opened = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await opened.wait()
        # Whoever was let in may begin even now, as its workspace had to be opened first.
        assert (await drain.answer(answered)) == "run"
        await send_json(send, 200, {})

    async def answered() -> str:
        return "run"

    drain = Drain(lambda: PATIENCE)
    quotas = Quotas(in_flight=1)
    queue = FairQueue(lambda: quotas, lambda: 1)
    door = KnownByName(RunEntrance(Admission(app, queue, RateWindow(), lambda: quotas, 0.0), drain))
    served = asyncio.ensure_future(post(door, "ann", call("1")))
    await begun.wait()
    waiting = asyncio.ensure_future(post(door, "ann", call("1")))
    await until(lambda: queue.waiting == 1)
    assert drain.begin() == PATIENCE
    for refused in (await waiting, await post(door, "bob", call("1"))):
        assert refused.status == 503 and refused.reply["error"]["data"]["begun"] is False
    ended = asyncio.ensure_future(drain.all_over(PATIENCE))
    opened.set()
    assert (await served).status == 200 and await ended
    assert "ServerEnding" in str(await drain.answer(answered)), "nobody else begins"


async def test_a_failed_answer_gives_its_place_back() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("as a test wants it")

    quotas = Quotas()
    queue = FairQueue(lambda: quotas, lambda: 1)
    door = KnownByName(Admission(broken, queue, RateWindow(), lambda: quotas, 0.0))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="as a test wants it"):
            await post(door, "ann", call("1"))
    assert queue.under_way == 0


# ---------------------------------------------------------------- what replicas count together


async def test_replicas_count_together_and_each_by_itself_while_redis_is_away() -> None:
    quotas = Quotas(runs_per_minute=3)
    with running_redis() as redis:
        one, other = RateWindow(redis.url, "test"), RateWindow(redis.url, "test")
        assert [await window.seconds_to_wait("ann", quotas) for window in (one, other, one)] == [0, 0, 0]
        assert await other.seconds_to_wait("ann", quotas) > 1
        assert await other.seconds_to_wait("bob", quotas) == 0
        _kill(redis)
        # Open, as it is by default: each replica begins to count anew.
        assert [await one.seconds_to_wait("ann", quotas) for _ in range(3)] == [0, 0, 0]
        assert await one.seconds_to_wait("ann", quotas) > 1
        await one.aclose()
        await other.aclose()


async def test_without_redis_nobody_is_let_in_where_the_quota_says_closed() -> None:
    quotas = Quotas(without_redis="closed")
    with running_redis() as redis:
        window = RateWindow(redis.url, "test")
        assert await window.seconds_to_wait("ann", quotas) == 0
        _kill(redis)
        assert await window.seconds_to_wait("ann", quotas) > 0
        await window.aclose()


async def test_no_run_waits_for_redis_which_is_told_of_a_tenth_of_a_minute_at_a_time() -> None:
    quotas = Quotas(runs_per_minute=600)
    with running_redis() as redis:
        window = RateWindow(redis.url, "test")
        redis.freeze()
        assert [at_once(window.seconds_to_wait("ann", quotas)) for _ in range(20)] == [0] * 20
        redis.thaw()
        for number in range(200):
            assert await window.seconds_to_wait("bob", quotas) == 0, number
        await until(lambda: _counted(redis) > 0)
        assert _counted(redis) < 20, "a lease has 60 runs, and the next one is fetched when 30 are left"
        await window.aclose()


async def test_all_replicas_together_admit_a_tenth_beyond_the_quota_each_at_most() -> None:
    quotas = Quotas(runs_per_minute=100)
    with running_redis() as redis:
        windows = [RateWindow(redis.url, "test") for _ in range(3)]
        waits = [await windows[number % 3].seconds_to_wait("ann", quotas) for number in range(400)]
        assert 100 <= waits.count(0) <= 130
        assert min(waits[-100:]) > 1, "once the minute is spent, nobody begins"
        assert [await window.seconds_to_wait("bob", quotas) for window in windows] == [0, 0, 0]
        for window in windows:
            await window.aclose()


def at_once[T](waiting: Coroutine[Any, Any, T]) -> T:
    """Return the result of what must not wait for anything."""
    try:
        waiting.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


def _counted(redis: RedisProcess) -> int:
    """Return how many scripts Redis has run: each counts."""
    client: Any = Redis
    with client.from_url(redis.url) as asked:
        found = asked.info("commandstats")
    return sum(found.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))


async def test_a_lease_is_one_entry_in_redis_however_many_runs_it_has() -> None:
    with running_redis() as redis:
        window = RateWindow(redis.url, "test")
        for _ in range(3):
            assert await window.seconds_to_wait("ann", Quotas(runs_per_minute=1_000_000)) == 0
        client: Any = Redis
        with client.from_url(redis.url) as asked:
            # Not for a call: a script that Redis does not know yet runs at the second one.
            await until(lambda: bool(asked.keys("*quota*")))
            assert [asked.llen(key) for key in asked.keys("*quota*")] == [1]
        await window.aclose()


async def test_members_of_a_group_have_its_quotas_and_the_largest_of_several() -> None:
    quotas = Quotas.model_validate(
        {"runs_per_minute": 2, "waiting": 0, "groups": {"ci": {"runs_per_minute": 5}, "night": {"in_flight": 99}}}
    )
    assert quotas.of({"staff"}) is quotas
    assert (quotas.of({"ci", "night"}).runs_per_minute, quotas.of({"ci", "night"}).in_flight) == (5, 99)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {})

    def door(groups: set[str]) -> AsgiApp:
        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            scope[SCOPE_KEY] = Identity(f"token|{min(groups)}", "", groups=frozenset(groups))
            await admission(scope, receive, send)

        return known

    admission = Admission(app, FairQueue(lambda: quotas, lambda: 100), RateWindow(), lambda: quotas, 0.0)
    for groups, most in ({"staff"}, 2), ({"ci", "staff"}, 5):
        asked = [(await post(door(groups), "", call("1"))).status for _ in range(7)]
        assert asked == [200] * most + [429] * (7 - most)


def _kill(redis: RedisProcess) -> None:
    redis.kill()


# ---------------------------------------------------------------- a flood


async def test_a_flood_of_one_principal_leaves_the_pace_of_another(tmp_path: Path) -> None:
    # One that fits a gate; whoever is not slowed down makes it three to six times as slow.
    await _flooded(tmp_path, runs=450, connections=150, beside=24, most=2.5)  # so few runs tell no less


@pytest.mark.soak
async def test_a_flood_of_ten_thousand_runs_leaves_the_pace_of_another(tmp_path: Path) -> None:
    await _flooded(tmp_path, runs=10_000, connections=500, beside=200, most=1.5)


async def _flooded(directory: Path, runs: int, connections: int, beside: int, most: float) -> None:
    """Flood a server in turns, each between two controls, and judge all of them together.

    A busy machine is measured for longer: what it adds is spread over all of them, what a flood takes is not.
    """
    alone: list[float] = []
    flooded: list[float] = []

    def ratio() -> float:
        return statistics.median(flooded) / statistics.median(alone)

    async with team(directory) as bed:
        await _paced(bed, 5)
        for turn in range(MOST_TURNS):
            if turn >= TURNS and ratio() <= most:
                break
            flooder, statuses = f"flood-{turn}", Counter[int]()  # each has a whole quota
            await bed.post(flooder, call("1+1"))
            alone += await _paced(bed, beside // 2)
            floods = (_flood(bed, flooder, runs // connections, statuses) for _ in range(connections))
            async with sent(*floods) as flood:
                flooded += await _paced(bed, beside, lambda flood=flood: all(task.done() for task in flood))
                await asyncio.wait_for(asyncio.gather(*flood), 10 * PATIENCE)
            alone += await _paced(bed, beside // 2)
            assert statuses[200] > 40 and statuses[429] > runs // 2
    assert ratio() <= most, (ratio(), len(flooded))


async def test_searches_of_one_principal_leave_the_pace_of_another(tmp_path: Path) -> None:
    alone: list[float] = []
    beside: list[float] = []
    async with team(tmp_path) as bed:
        await bed.run("bob", "[file.write(path=f'{n}.txt', content='abcdefghij' * 500_000) for n in range(6)]")
        await bed.run("ann", "file.write(path='note.txt', content='fifteen bytes..')")
        await _paced(bed, 5, reading=True)
        for _ in range(ATTEMPTS):
            alone += await _paced(bed, 10, reading=True)
            async with sent(*(bed.run("bob", SEARCHES) for _ in range(8))):
                await until(lambda: bed.front._host.heavy._away.has(principal("bob")))
                beside += await _paced(bed, 10, reading=True)
            # In threads of the server's process, these searches made it a hundred times as long.
            if statistics.median(beside) <= 3 * statistics.median(alone):
                return
    pytest.fail(f"{statistics.median(beside)} s beside searches, {statistics.median(alone)} s alone")


async def _flood(bed: TeamBed, flooder: str, count: int, statuses: Counter[int]) -> None:
    for _ in range(count):
        statuses[(await bed.post(flooder, call("1+1"))).status] += 1


async def _paced(
    bed: TeamBed, count: int, over: Callable[[], bool] = lambda: False, *, reading: bool = False
) -> list[float]:
    """Return how long runs took of somebody who sends one at a time, and not more than the quota."""
    seconds: list[float] = []
    command = "file.read(path='note.txt')" if reading else "1+1"
    while len(seconds) < count and not over():
        begun = time.perf_counter()
        assert (await bed.post("ann", call(command))).status == 200
        seconds.append(time.perf_counter() - begun)
        await asyncio.sleep(0.1)
    return seconds
