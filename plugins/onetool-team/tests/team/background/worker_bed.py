"""Workers, a real PostgreSQL, a Redis and a service that counts, against which the end of every run is held."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import secrets
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onetool_team.state.redis_state import RedisState
from onetool_team.state.run_bell import RunBell
from ot.ledger.background_run import BackgroundRun, RunStatus
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess
from team.background.counter_service import CounterService, program
from team.background.team_book import TeamBook
from team.background.worker_process import WorkerProcess

ANN = "token|ann"
KEY = "0123456789abcdef" * 3
CONFIG = """
engines: {{use: portable, portable: {{processes: {at_once}}}}}
policy: {{allow: ["counter.*"]}}
servers: {{counter: {{url: "{counter}"}}}}
background: {{at_once: {at_once}}}
state: {{redis: "{redis}", postgres: "{postgres}", keys: ["{key}"]}}
http: {{tokens: {{ann: {{hash: "sha256:{zeros}"}}}}}}
logs: {{level: WARNING}}
{more}
"""
WRITES = [n for n in range(12) if n % 3 != 2]
REPORTED = re.compile(r"- (done|unknown): counter\.add, line \d+(?:, (\d+) times)?")
MOST_OPEN = 100_000


@dataclass
class WorkerBed:
    """Everything that runs, and the runs that were asked for."""

    root: Path
    redis: RedisProcess
    postgres: PostgresServer
    counter: CounterService
    book: TeamBook
    bell: RunBell
    at_once: int = 4
    more: str = ""
    """Further settings."""
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    asked: dict[str, str] = field(default_factory=dict[str, str])
    """The id of each run, and what the counter knows it by."""
    kills: int = 0
    freezes: int = 0
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def config(self) -> str:
        """The configuration of workers."""
        values = {"counter": self.counter.url, "redis": self.redis.url, "key": KEY, "zeros": "0" * 64}
        values["postgres"] = self.postgres.address
        return CONFIG.format(at_once=self.at_once, more=self.more, **values)

    def start_worker(self, *, ready: bool = True) -> WorkerProcess:
        """Start one more worker."""
        worker = WorkerProcess.start(self.root / "workers", self.config, ready=ready)
        self.workers.append(worker)
        return worker

    async def ask(self, command: str = "") -> str:
        """Have a run carried out, and return its id."""
        name = f"r{next(self._numbers)}"
        id = secrets.token_hex(8)
        self.asked[id] = name
        await self.book.add(BackgroundRun(id, ANN, command or program(name), time.time()), MOST_OPEN)
        await self.bell.submit(id)
        return id

    async def status(self, id: str) -> RunStatus:
        """Return what is known of a run."""
        return await self.book.known(ANN, id)

    async def ended(self, id: str, seconds: float) -> RunStatus:
        """Return a run's status once it has ended."""
        async with asyncio.timeout(seconds):
            while not (status := await self.status(id)).end:  # noqa: ASYNC110 - the book tells nobody
                await asyncio.sleep(0.05)
        return status

    async def started(self, id: str, starts: int = 1) -> RunStatus:
        """Return a run's status once it was started so often."""
        async with asyncio.timeout(PATIENCE):
            while (status := await self.status(id)).starts < starts:
                assert not status.end, status
                await asyncio.sleep(0.02)
        return status

    async def all_ended(self, seconds: float) -> None:
        """Return once no run is open."""
        async with asyncio.timeout(seconds):
            for id in self.asked:
                await self.ended(id, seconds)

    # ---------------------------------------------------------------- what goes wrong

    def kill_one(self) -> None:
        """Kill a worker with SIGKILL, and start another in its place."""
        worker = self.workers.pop(random.randrange(len(self.workers)))
        worker.die()
        self.kills += 1
        self.start_worker()
        worker.close()

    async def freeze_one(self, seconds: float) -> None:
        """Stop a worker for some time, as a machine that is moved does."""
        worker = random.choice(self.workers)
        worker.signal(signal.SIGSTOP)
        self.freezes += 1
        await asyncio.sleep(seconds)
        with suppress(ProcessLookupError):  # killed meanwhile
            worker.signal(signal.SIGCONT)

    # ---------------------------------------------------------------- what must hold

    async def check(self) -> Counter[str]:
        """Check every run against the counter, and return how many ended in which way."""
        counted = self.counter.counted()
        assert [write for write, times in counted.items() if times > 1] == [], "written twice"
        written: dict[str, set[int]] = defaultdict(set)
        for run, call in counted:
            written[run].add(call)
        ends: Counter[str] = Counter()
        for id, name in self.asked.items():
            status = await self.status(id)
            assert status.end, f"{name} has not ended"
            ends[status.state] += 1
            await check_run(self.book, status, written[name])
        return ends


async def check_run(book: TeamBook, status: RunStatus, written: set[int]) -> None:
    """Check that what a run's end says is what the counter saw."""
    entries = await book.of_run(status.run.principal, status.run.id)
    assert status.state in ("done", "stopped", "cancelled"), status.end
    done = [entry for entry in entries if entry.state == "done"]
    unknown = [entry for entry in entries if entry.state in ("unknown", "sent")]
    assert len(done) <= len(written) <= len(done) + len(unknown), (status, entries, written)
    assert {entry.value for entry in done} <= written, (status, entries, written)
    if status.state == "done":
        assert (written, unknown) == (set(WRITES), []), (status, entries, written)
    if status.state == "stopped":
        _check_report(status, len(written))


def _check_report(status: RunStatus, written: int) -> None:
    """Check that what the report says is done has happened, and what it says is unknown may have."""
    assert status.end
    text = "\n".join(status.end.texts)
    told: Counter[str] = Counter()
    for word, times in REPORTED.findall(text):
        told[word] += int(times or 1)
    assert told["done"] <= written <= told["done"] + told["unknown"], (text, written)


@asynccontextmanager
async def worker_bed(root: Path, redis: RedisProcess, workers: int = 2, **options: Any) -> AsyncGenerator[WorkerBed]:
    """Yield *workers* that carry out runs, and end everything."""
    with postgres_server("fsync=on") as postgres:
        counter = CounterService.start(root)
        book, state = TeamBook(postgres.address, "onetool", KEY), RedisState(redis.url, answer_seconds=PATIENCE)
        bed = WorkerBed(root, redis, postgres, counter, book, RunBell(state), **options)
        try:
            await asyncio.gather(*(asyncio.to_thread(bed.start_worker) for _ in range(workers)))
            yield bed
        finally:
            for worker in bed.workers:
                worker.close()
            await book.aclose()
            await state.aclose()
            counter.close()
