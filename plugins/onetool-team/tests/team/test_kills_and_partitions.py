"""A whole team's server under load while its parts are killed and cut off from each other; for long runs."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from http_server import call, reply_of
from pace import PATIENCE
from system_package import require_programs
from team.background.counter_service import CounterService, program
from team.background.team_book import TeamBook
from team.background.worker_bed import check_run
from team.whole_team import WholeTeam, whole_team

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(3600)]

KILLS = 50
PARTITIONS = 20
USERS = 6
HANDLE = re.compile(r'"handle":"([\w-]+)"')
ANSWERED = {200, 401, 429, 503, 504}
"""What a request may be answered with; a closed connection is an answer too."""


class Load:
    """Users who each run programs without end, and hold the answers to what only they could have been told."""

    def __init__(self, team: WholeTeam) -> None:
        self._team = team
        self._numbers = itertools.count()
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.kept: list[tuple[str, str, str]] = []
        """The user, the handle and the mark of every result that was reported as stored."""

    async def user(self, name: str) -> None:
        """Run programs until cancelled."""
        async with self._team.raw(self._team.login(name)) as client:
            while True:
                await self._once(client, name, f"{name}-{next(self._numbers)}-end")

    async def _once(self, client: httpx2.AsyncClient, name: str, mark: str) -> None:
        large = random.random() < 0.2
        command = f"['{mark}'] * 400" if large else f"'{mark}'"
        try:
            answer = await client.post("/mcp", json=call(command))
        except httpx2.TransportError as error:
            self.seen[type(error).__name__] += 1
            if isinstance(error, httpx2.TimeoutException):
                self.wrong.append(f"no answer and no closed connection for {mark}")
            return
        self.seen[str(answer.status_code)] += 1
        if answer.status_code not in ANSWERED:
            self.wrong.append(f"{answer.status_code}: {answer.text[:300]}")
        elif answer.status_code == 200:
            self._looked_at(name, mark, reply_of(answer))

    def _looked_at(self, name: str, mark: str, reply: dict[str, Any]) -> None:
        text = "\n".join(block["text"] for block in reply.get("result", {}).get("content", []))
        if others := set(re.findall(r"user\d+-\d+-end", text)) - {mark}:
            self.wrong.append(f"{name} was told of {others}")
        if found := HANDLE.search(text):
            self.kept.append((name, found[1], mark))

    async def lost(self) -> list[str]:
        """Return the results that were reported as stored and cannot be read."""
        missing: list[str] = []
        for name, handle, mark in self.kept[-300:]:
            async with self._team.raw(self._team.login(name)) as client:
                answer = await client.post("/mcp", json=call(f"ot.result(handle={handle!r}, limit=1)"))
                if mark not in answer.text:
                    missing.append(f"{name}: {mark}: {answer.text[:200]}")
        return missing


async def under_load(team: WholeTeam, disturb: Any, times: int) -> Load:
    """Return what users saw while *disturb* was called *times* times, each after some answers."""
    load = Load(team)
    async with team.balancing():
        users = [asyncio.ensure_future(load.user(f"user{n}")) for n in range(USERS)]
        try:
            for _ in range(times):
                before = load.seen.total()
                async with asyncio.timeout(2 * PATIENCE):
                    while load.seen.total() < before + 30:  # noqa: ASYNC110 - answers tell nobody
                        await asyncio.sleep(0.05)
                await disturb()
        finally:
            for user in users:
                user.cancel()
            await asyncio.gather(*users, return_exceptions=True)
        await asyncio.sleep(3)  # what was switched off for a while is tried again
        assert load.wrong == []
        assert await load.lost() == []
    return load


async def test_any_part_may_be_killed_under_load(tmp_path: Path) -> None:
    with whole_team(tmp_path) as team:

        def replica(place: int, name: str) -> None:
            team.replicas[place].kill()
            team.replicas[place] = _again(team, place, name)

        def redis() -> None:
            team.redis.kill()
            team.redis.start()

        def s3() -> None:
            team.s3.kill()
            team.s3.start()

        parts = itertools.cycle([lambda: replica(0, "one"), redis, lambda: replica(1, "other"), s3])
        load = await under_load(team, lambda: asyncio.to_thread(next(parts)), KILLS)
    assert load.seen["200"] > 10 * KILLS, load.seen
    assert len(load.kept) > KILLS, load.seen


class BackgroundLoad(Load):
    """Users who begin background runs as well, each of which writes to a service that counts."""

    def __init__(self, team: WholeTeam) -> None:
        super().__init__(team)
        self.begun: dict[str, tuple[str, str]] = {}
        """The id of each run that was taken, who asked for it, and what the counter knows it by."""

    async def _once(self, client: httpx2.AsyncClient, name: str, mark: str) -> None:
        await super()._once(client, name, mark)
        if random.random() > 0.05:
            return
        try:
            answer = await client.post("/mcp", json=call(f"ot.background(command={program(mark)!r})['id']"))
        except httpx2.TransportError:
            return  # it may have been taken or not
        result = reply_of(answer).get("result", {}) if answer.status_code == 200 else {}
        if not result.get("isError"):
            # A note about the ledger may follow the id.
            self.begun |= {block["text"]: (name, mark) for block in result.get("content", [])[:1]}

    async def ends(self, book: TeamBook, issuer: str) -> Counter[str]:
        """Return how the runs ended, once all have."""
        ends: Counter[str] = Counter()
        for id, (name, _) in self.begun.items():
            async with asyncio.timeout(10 * PATIENCE):
                while not (status := await book.known(f"{issuer}|{name}", id)).end:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.1)
            ends[status.state] += 1
        return ends


@pytest.mark.parametrize("minutes", [10])
async def test_replicas_workers_redis_and_s3_may_be_killed_in_turn_while_runs_go_on_in_the_background(
    tmp_path: Path, minutes: float
) -> None:
    (tmp_path / "counter").mkdir()
    counter = CounterService.start(tmp_path / "counter")
    more = f'servers: {{counter: {{url: "{counter.url}"}}}}\nbackground: {{most_open: 100000}}'
    with whole_team(tmp_path, more=more) as team:
        load, ends = await _in_turn(team, counter, minutes * 60)
    counter.close()
    assert ends.total() > 5 * minutes, ends
    assert load.seen["200"] > 10 * minutes, load.seen


async def _in_turn(team: WholeTeam, counter: CounterService, seconds: float) -> tuple[BackgroundLoad, Counter[str]]:
    """Return what users saw, and how background runs ended, while one part after the other was killed."""
    workers = [team.start_worker(f"worker{n}") for n in range(2)]
    load = BackgroundLoad(team)
    book = TeamBook(team.postgres.address, team.root.name, team.tokens["ann"])

    def replica(place: int, name: str) -> None:
        team.replicas[place].kill()
        team.replicas[place] = _again(team, place, name)

    def worker(place: int) -> None:
        workers[place].die()
        workers[place].close()
        workers[place] = team.start_worker(f"worker{place}")

    def restart(part: Any) -> None:
        part.kill()
        part.start()

    kills = itertools.cycle(
        [
            lambda: replica(0, "one"),
            lambda: worker(0),
            lambda: restart(team.redis),
            lambda: restart(team.postgres),
            lambda: replica(1, "other"),
            lambda: worker(1),
            lambda: restart(team.s3),
        ]
    )
    until = time.monotonic() + seconds
    async with team.balancing():
        users = [asyncio.ensure_future(load.user(f"user{n}")) for n in range(USERS)]
        while time.monotonic() < until:
            await asyncio.sleep(random.uniform(0.5, 4))
            await asyncio.to_thread(next(kills))
        for user in users:
            user.cancel()
        await asyncio.gather(*users, return_exceptions=True)
        ends = await load.ends(book, team.issuer.origin)
        await asyncio.sleep(3)  # what was switched off for a while is tried again
        assert load.wrong == []
        assert await load.lost() == []
    counted = counter.counted()
    assert [write for write, times in counted.items() if times > 1] == []
    for id, (name, mark) in load.begun.items():
        status = await book.known(f"{team.issuer.origin}|{name}", id)
        await check_run(book, status, {number for run, number in counted if run == mark})
    for one in workers:
        one.close()
    await book.aclose()
    return load, ends


def _again(team: WholeTeam, place: int, name: str) -> Any:
    """Start a replica again where the balancer looks for it."""
    port = team.replicas[place].port
    return team.start_replica(name, str(port))


@contextmanager
def cut_off(namespace: str) -> Generator[None]:
    """Take the cable of a network namespace out, and put it in again."""
    subprocess.run(["ip", "netns", "exec", namespace, "ip", "link", "set", "inside", "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "exec", namespace, "ip", "link", "set", "inside", "up"], check=True)


@contextmanager
def network(namespace: str) -> Generator[str]:
    """Yield the address of a network namespace that is reached over a cable of its own."""
    require_programs("ip")
    address, ours = "10.83.83.2", "10.83.83.1"
    commands = [
        f"netns add {namespace}",
        f"link add {namespace} type veth peer name inside netns {namespace}",
        f"addr add {ours}/30 dev {namespace}",
        f"link set {namespace} up",
        f"netns exec {namespace} ip addr add {address}/30 dev inside",
        f"netns exec {namespace} ip link set inside up",
        f"netns exec {namespace} ip link set lo up",
    ]
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        yield address
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=False)


async def test_a_partition_between_replicas_and_redis_is_survived(tmp_path: Path) -> None:
    with network("otredis") as address, whole_team(tmp_path, redis_in="otredis", redis_at=address) as team:

        async def partition() -> None:
            with cut_off("otredis"):
                await asyncio.sleep(random.uniform(0.2, 3))

        load = await under_load(team, partition, PARTITIONS)
    assert load.seen["200"] > 10 * PARTITIONS, load.seen
