"""What only the portable engine can suffer: workers that die while they wait for a program."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from ot.runtime.engines.portable import PortableEngine
from run_app import running_app, value_of

pytestmark = pytest.mark.anyio


async def test_a_worker_that_is_dying_when_a_run_begins_costs_the_run_nothing(tmp_path: Path) -> None:
    engine = PortableEngine()
    async with running_app(tmp_path, engine=engine) as app:
        with anyio.fail_after(60):
            for number in range(30):
                await app.run("0")
                # A signal is delivered in its own time: some of these workers still look alive when they are taken.
                for session in engine._sessions._ready:
                    if session.worker_pid:
                        os.kill(session.worker_pid, signal.SIGKILL)
                assert str(number) == value_of(await app.run(str(number)))
