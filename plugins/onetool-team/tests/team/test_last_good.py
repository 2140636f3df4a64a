"""A bad line is not an outage: the last configuration that could be read serves everybody, and operators see it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from free_ports import free_port
from http_server import HttpServer, text_of
from onetool_team import live_configuration
from onetool_team.auth.static_tokens import new_token, token_hash
from onetool_team.workspaces import PEOPLE, directory_name
from ot.config.load import UserFiles, read_user_files
from ot.config.paths import Paths
from ot.config.principal import Owner
from ot.config.snapshot import Snapshot, take_snapshot
from ot.registry import extension_source
from pace import PATIENCE
from team.team_bed import TeamBed, principal, team

pytestmark = pytest.mark.anyio

BROKEN = "nonsense: ["
OWN = "'of-one-' + 'alone'"
"""A program that has the secret of one person as its result."""
PACK = '''"""Greets."""
# /// script
# dependencies = []
# ///


def say() -> str:
    """{}, in a word."""
    return ""
'''


def people(tmp_path: Path) -> dict[str, Any]:
    return {
        "http": {"workspaces": {"each": str(tmp_path / "people")}},
    }


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Paths]:
    """What was read: one entry each time that the configuration's files were."""
    found: list[Paths] = []

    def read(paths: Paths) -> UserFiles:
        found.append(paths)
        return read_user_files(paths)

    monkeypatch.setattr(live_configuration, "read_user_files", read)
    return found


def own_secrets(bed: TeamBed, name: str, text: str) -> None:
    """Give *name* secrets of their own."""
    place = bed.home / PEOPLE / directory_name(principal(name))
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    (place / "secrets.yaml").write_text(text)
    (place / "secrets.yaml").chmod(0o600)


async def test_the_configuration_is_read_once_for_everybody_and_once_more_when_it_changes(
    tmp_path: Path, reads: list[Paths]
) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        names = [f"p{number}" for number in range(10)]
        own_secrets(bed, "p3", "T: of-one-alone\n")
        for name in names:
            assert await bed.run(name, "1") == "1"
        assert len(reads) == 1
        assert await bed.run("p3", OWN) == "[secret:T]"
        (bed.home / "onetool.yaml").write_text(json.dumps({**people(tmp_path), "policy": {"deny": ["file.*"]}}))
        for name in names:
            assert "denied" in await bed.run(name, "file.list()")
        assert len(reads) == 2


async def test_packs_are_read_once_for_everybody_and_once_more_when_one_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def take(root: Path) -> Snapshot:
        taken.append(root)
        return take_snapshot(root)

    monkeypatch.setattr(extension_source, "take_snapshot", take)
    async with team(tmp_path, people(tmp_path)) as bed:
        file = bed.home / "tools" / "greet" / "greet_tools.py"
        file.parent.mkdir(parents=True)
        names = [f"p{number}" for number in range(5)]
        for version in ("Hello", "Good day"):
            file.write_text(PACK.format(version))
            for name in names:
                assert version in await bed.run(name, "ot.help(query='greet.say')")
        assert taken == [file.parent] * 2
        (bed.home / "onetool.yaml").write_text(json.dumps({**people(tmp_path), "policy": {"deny": ["file.*"]}}))
        for name in names:
            assert "denied" in await bed.run(name, "file.list()")
        assert taken == [file.parent] * 2


def test_a_variable_that_leads_installers_to_what_one_person_writes_is_left_out_for_that_person(tmp_path: Path) -> None:
    home = tmp_path / "operator"
    home.mkdir()
    environ = {"UV_CACHE_DIR": str(tmp_path / "people" / "ann" / "cache"), "UV_INDEX": str(tmp_path / "index")}
    paths = Paths(tmp_path, None, home, environ=environ)
    configuration = live_configuration.LiveConfiguration(paths)

    def given(name: str) -> set[str]:
        owner = Owner(principal(name), home / PEOPLE / name / "secrets.yaml")
        loaded = configuration.of(replace(configuration.paths, cwd=tmp_path / "people" / name), owner)
        return {name for name in loaded.secrets.environment if name.startswith("UV_")}

    assert given("ann") == {"UV_INDEX"}
    assert given("bob") == {"UV_INDEX", "UV_CACHE_DIR"}


async def test_after_a_bad_edit_all_go_on_with_the_last_good_one_those_too_who_come_only_now(tmp_path: Path) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        assert await bed.run("ann", "1") == "1"
        for file, bad in ("onetool.yaml", BROKEN), ("secrets.yaml", "T: [1]"):
            before = (bed.home / file).read_text() if (bed.home / file).exists() else ""
            (bed.home / file).write_text(bad)
            (bed.home / file).chmod(0o600)
            own_secrets(bed, f"cid-{file}", "T: of-one-alone\n")
            for name in ("ann", f"bob-{file}", f"cid-{file}"):
                assert await bed.run(name, "1") == "1"
            assert await bed.run(f"cid-{file}", OWN) == "[secret:T]"
            assert file in bed.front.configuration.trouble
            assert file in await bed.run("ann run admin", "ot.reload()"), "whoever asks for it is told"
            (bed.home / file).write_text(before or "# none\n")
            assert await bed.run("ann", "1") == "1"
            assert not bed.front.configuration.trouble


def metrics(port: int) -> str:
    """Return what Prometheus reads."""
    return httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text


def test_a_bad_edit_is_seen_by_who_looks_at_the_server_and_leaves_it_ready(tmp_path: Path) -> None:
    port, token = free_port(), new_token()
    settings = {
        "engines": {"use": "portable"},
        "telemetry": {"metrics": f"127.0.0.1:{port}"},
        "http": {"tokens_file": "people.txt"},
    }
    home = tmp_path / "home" / ".onetool"
    home.mkdir(parents=True)
    (home / "people.txt").write_text(f"ann {token_hash(token)}\n")
    with HttpServer.start(tmp_path, json.dumps(settings)) as server:
        assert text_of(server.run("1", token=token)) == "1"
        assert "onetool_config_valid 1.0" in metrics(port)
        file = server.place.config
        file.write_text(f"{json.dumps(settings)}\n{BROKEN}")
        ready = server.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert "onetool.yaml:2" in ready.json()["degraded"] and "nonsense" not in ready.text
        assert "onetool_config_valid 0.0" in metrics(port)
        assert text_of(server.run("1", token=token)) == "1"
        file.write_text(json.dumps(settings))
        assert "degraded" not in server.get("/readyz").json()
        assert "onetool_config_valid 1.0" in metrics(port)
