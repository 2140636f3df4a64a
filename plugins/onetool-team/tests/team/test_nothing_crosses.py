"""Twenty people on one server, who also try: nobody ever sees anything of another."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from team.canaries import Crowd, crowd

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Let the protocol's library draw no frames around the errors that these tests provoke by the hundred."""
    caplog.set_level(logging.CRITICAL, "fastmcp")


async def test_five_hundred_mixed_runs_of_twenty_people_cross_nowhere(tmp_path: Path) -> None:
    async with crowd(tmp_path, seed=1) as found:
        await _crossing_nowhere(found, 500)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
async def test_twenty_thousand_mixed_runs_of_twenty_people_cross_nowhere(tmp_path: Path, seed: int) -> None:
    async with crowd(tmp_path, seed) as found:
        await _crossing_nowhere(found, 20_000)


async def _crossing_nowhere(found: Crowd, count: int) -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(found.bed.front.workspace.host.redaction.redact(record.getMessage()))
    logging.getLogger("ot").addHandler(handler)
    try:
        await found.settle_all()
        await found.mix(count)
    finally:
        logging.getLogger("ot").removeHandler(handler)
    kinds = {kind for person in found.people for kind in person.seen}
    assert len(kinds) >= 15
    for person in found.people:
        assert not any(f"token-of-{person.canary}" in line or f"key-of-{person.canary}" in line for line in lines)
