"""What doctor says of the ledger: where it is, and why an entry may be lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ot.cli.diagnosis import Finding
from ot.cli.diagnosis.setup import ledger_findings
from ot.config.load import load_config
from ot.config.models import Config
from ot.config.paths import Paths
from ot.config.trust import Trust
from state.redis_process import running_redis

pytestmark = pytest.mark.anyio

KEYS = ["a key of 32 characters, or of more than that"]
SILENT = "--user default on nopass ~* +@all -config"


async def found(tmp_path: Path, **settings: Any) -> Finding:
    paths = Paths(tmp_path, None, tmp_path / "user")
    loaded = replace(load_config(paths, Trust(paths.global_dir)), config=Config.model_validate(settings))
    (finding,) = await ledger_findings(loaded, paths)
    return finding


@pytest.mark.parametrize(("durability", "survives"), [("process", "a crash or a kill"), ("power", "a loss of power")])
async def test_the_file_of_one_user_and_what_it_survives(tmp_path: Path, durability: str, survives: str) -> None:
    finding = await found(tmp_path, ledger={"durability": durability})
    assert finding == Finding("ledger", "ok", f"{tmp_path}/user/ledger/ledger.db: entries survive {survives}")
    assert not (tmp_path / "user" / "ledger").exists()


@pytest.mark.parametrize(
    ("options", "state", "text"),
    [
        (("--appendonly", "yes", "--appendfsync", "always"), "ok", "writes every entry to its disk before the call"),
        (("--appendonly", "yes", "--appendfsync", "everysec"), "note", "appendfsync is everysec"),
        ((), "note", "Redis has no append-only file"),
        (tuple(SILENT.split()), "note", "could not be read"),
    ],
    ids=["always", "everysec", "no file", "not told"],
)
async def test_what_redis_keeps(tmp_path: Path, options: tuple[str, ...], state: str, text: str) -> None:
    with running_redis(*options) as redis:
        finding = await found(tmp_path, state={"redis": redis.url, "keys": KEYS}, ledger={"replicas": 2})
    assert state == finding.state
    assert text in finding.text
    assert "2 of its replicas have each entry first" in finding.text
    assert bool(finding.advice) == (state == "note")


async def test_a_redis_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    finding = await found(tmp_path, state={"redis": f"unix://{tmp_path}/none.sock", "keys": KEYS})
    assert "problem" == finding.state
    assert "the shared state is unreachable" in finding.text


async def test_a_redis_without_keys_is_a_problem(tmp_path: Path) -> None:
    finding = await found(tmp_path, state={"redis": "redis://127.0.0.1:1"})
    assert "problem" == finding.state
    assert "state.keys" in finding.text
