"""Sessions that are entered ahead: each process of the pool stays for good, so none is started that is not needed."""

from __future__ import annotations

import time

import pytest

from ot.runtime.engines.portable import ready_sessions
from ot.runtime.engines.portable.ready_sessions import AHEAD, ReadySessions
from pace import PATIENCE

pytestmark = pytest.mark.anyio

LIMITS = {"max_memory": 64 << 20}


async def test_runs_right_after_each_other_need_one_process_more_than_wait_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ready_sessions, "HAND_BACK_SECONDS", PATIENCE)
    sessions = ReadySessions(64, PATIENCE)
    await sessions.prepare(LIMITS)
    processes: set[int | None] = set()
    for _ in range(100):
        async with sessions.session(LIMITS, time.monotonic() + PATIENCE) as session:
            await session.feed_run("1 + 1")
            processes.add(session.worker_pid)
    await sessions.aclose()
    assert len(processes) <= AHEAD + 1
