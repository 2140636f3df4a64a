"""What doctor says of a team's ledger: where it is, and why an entry may be lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onetool_team.findings import team_findings
from ot.cli.diagnosis import Finding
from ot.config.load import load_config
from ot.config.paths import Paths
from ot.config.sections import read_settings
from ot.config.trust import Trust
from postgres_server import postgres_server

pytestmark = pytest.mark.anyio

REDIS, KEYS = "redis://127.0.0.1:1", ["a key of 32 characters, or of more than that"]


async def find(tmp_path: Path, **state: Any) -> Finding:
    paths = Paths(tmp_path, None, tmp_path / "user")
    settings = read_settings({"state": {"redis": REDIS, "keys": KEYS, **state}})
    loaded = replace(load_config(paths, Trust(paths.global_dir)), config=settings)
    (finding,) = await team_findings(loaded)
    return finding


async def test_nothing_is_said_where_there_are_no_replicas(tmp_path: Path) -> None:
    paths = Paths(tmp_path, None, tmp_path / "user")
    assert await team_findings(load_config(paths, Trust(paths.global_dir))) == []


async def test_replicas_with_a_ledger_each_are_noted(tmp_path: Path) -> None:
    finding = await find(tmp_path)
    assert ("note", "set state.postgres") == (finding.state, finding.advice)


async def test_what_postgres_keeps(tmp_path: Path) -> None:
    with postgres_server("full_page_writes=off") as careless:
        finding = await find(tmp_path, postgres=careless.address)
    assert ("note", "set them to on") == (finding.state, finding.advice)
    assert "PostgreSQL has fsync and full_page_writes off" in finding.text
    with postgres_server("fsync=on") as careful:
        finding = await find(tmp_path, postgres=careful.address)
    assert "ok" == finding.state
    assert "writes every entry to its disk before the call" in finding.text


async def test_a_postgres_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    finding = await find(tmp_path, postgres=f"postgresql://me:hunter2@/x?host={tmp_path}")
    assert "problem" == finding.state
    assert "the ledger's PostgreSQL is unreachable" in finding.text
    assert "hunter2" not in finding.text


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"postgres": "postgresql://x", "keys": []}, "needs state.redis and state.keys"),
        ({"postgres": "mysql://x"}, "not an address of PostgreSQL"),
        ({"postgres": "postgresql://x", "prefix": "p" * 64}, "at most 63 bytes"),
    ],
    ids=["no keys", "another database", "a long name"],
)
async def test_settings_that_cannot_be_used_are_a_problem(tmp_path: Path, state: dict[str, Any], text: str) -> None:
    finding = await find(tmp_path, **state)
    assert "problem" == finding.state
    assert text in finding.text
