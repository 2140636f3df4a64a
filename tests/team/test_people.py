"""Everyone who uses a team's server has a workspace of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from team.team_bed import run, team, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_each_principal_works_in_a_directory_of_their_own_in_both_eras(tmp_path: Path, mode: str) -> None:
    config = {"http": {"workspaces": {"each": str(tmp_path / "people")}}}
    async with team(tmp_path, config) as bed:
        for name in ("ann", "bob"):
            async with bed.client(name, mode) as client:
                await run(client, f"file.write(path='note.txt', content='of {name}')")
        for name in ("ann", "bob"):
            async with bed.client(name, mode) as client:
                assert f"of {name}" in text_of(await run(client, "file.read(path='note.txt')"))
    places = sorted((tmp_path / "people").iterdir())
    assert [place.name.partition("-")[0] for place in places] == ["ann", "bob"]
    assert all(place.stat().st_mode & 0o777 == 0o700 for place in places)


async def test_those_who_come_at_the_same_time_share_one_workspace(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        texts = await asyncio.gather(*(bed.run("ann", "ot.health()['cwd']") for _ in range(20)))
        assert len(set(texts)) == 1 and len(bed.front) == 1
