"""Packs that change, vanish, belong to a project, want settings or secrets."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from ot.config.inventory import take_inventory
from ot.config.paths import FOLDER, Paths
from ot.config.trust import Trust
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from proxied.desk import until
from run_app import error_of, paths_in, value_of
from workers.corpus_faults import Fault, fault
from workers.door import source_of
from workers.process_watch import assert_gone
from workers.watched_workers import write_pack

pytestmark = pytest.mark.anyio

VERSION = '''
import os
import time


def version(*, until: str = "") -> list:
    """Return the version of this file, once a file is there; another one says that the call is."""
    if until:
        open(until + ".came", "w").close()
    while until and not os.path.exists(until):
        time.sleep(0.01)
    return [{number}, os.getpid()]
'''
SECRETIVE = '''
import dataclasses

import ot_sdk

__ot_requires__ = {"secrets": ["GIVEN", "KEPT"]}


@dataclasses.dataclass
class Config:
    limit: int = 3


def has(*, name: str) -> bool:
    """Return whether the secret is there."""
    try:
        return bool(ot_sdk.secret(name).reveal())
    except ot_sdk.SecretNotGranted:
        return False


def limit() -> int:
    """Return a setting."""
    return ot_sdk.config().limit
'''


async def versions(app: Workspace, until: str = "") -> list[int]:
    """Return the version that answers, and its process; once a file is there."""
    return json.loads(value_of(await app.run(f"edited.version(until={until!r})")))


@fault("W44")
async def test_a_call_ends_on_the_code_that_it_began_on_and_the_next_is_new(tmp_path: Path, fault: Fault) -> None:
    paths = paths_in(tmp_path, {})
    write_pack(paths.global_dir, "edited", VERSION.replace("{number}", "1"))
    app = Workspace.alone(paths)
    try:
        with anyio.fail_after(30):
            _, old = await versions(app)
            slow = asyncio.create_task(versions(app, str(goes_on := tmp_path / "goes on")))
            await until(tmp_path.joinpath("goes on.came").exists)
            write_pack(paths.global_dir, "edited", VERSION.replace("{number}", "22"))
            assert 22 == (await versions(app))[0]
            assert not slow.done()
            goes_on.touch()
            assert [1, old] == await slow
            await app.host.workers._settle()
        assert_gone([old])
    finally:
        await app.aclose()


@fault("W45")
@pytest.mark.parametrize("how", ["deleted", "unreadable", "dangling"])
async def test_a_pack_whose_file_goes_is_an_error_and_others_are_fine(tmp_path: Path, how: str, fault: Fault) -> None:
    """Root reads a file of mode 000 as well: for root that case shows only that nothing breaks."""
    paths = paths_in(tmp_path, {})
    file = write_pack(paths.global_dir, "edited", VERSION.replace("{number}", "1"))
    write_pack(paths.global_dir, "calm", source_of("calm"))
    app = Workspace.alone(paths)
    try:
        await versions(app)
        if how == "unreadable":
            file.chmod(0)
        else:
            file.unlink()
        if how == "dangling":
            file.symlink_to("/nonexistent")
        reply = await app.run("edited.version()")
        assert reply.is_error or (how == "unreadable" and os.getuid() == 0)
        assert "x" == value_of(await app.run("calm.echo(nonce='x')"))
    finally:
        await app.aclose()


TOKEN_PACK = """
import ot_sdk

__ot_requires__ = {"secrets": ["WEATHER_TOKEN"]}


def forecast(*, city: str) -> int:
    return len(ot_sdk.secret("WEATHER_TOKEN").reveal())
"""


async def test_a_missing_secret_in_a_file_that_others_can_read_is_told_with_the_file_and_the_cure(
    tmp_path: Path,
) -> None:
    server = {"command": "cat", "env": {"A": "${WEATHER_TOKEN}"}}
    paths = paths_in(tmp_path, {"servers": {"needs": server}})
    write_pack(paths.global_dir, "weather", TOKEN_PACK)
    secrets = paths.global_dir / "secrets.yaml"
    secrets.write_text("WEATHER_TOKEN: tok-123456789\n")
    secrets.chmod(0o644)
    app = Workspace.alone(paths, engine=PortableEngine())
    try:
        for call in ("weather.forecast(city='Oslo')", "needs.x()"):
            said = error_of(await app.run(call))
            assert "WEATHER_TOKEN" in said
            assert said.endswith(f"{secrets} can be read by other users and was not used: run chmod 600 on it")
            assert "service unavailable" not in said
        secrets.chmod(0o600)
        assert "13" == value_of(await app.run("weather.forecast(city='Oslo')"))
    finally:
        await app.aclose()


def project(directory: Path, config: dict[str, Any] | None = None, **packs: str) -> Paths:
    """Return the paths of a project with *packs*."""
    paths = paths_in(directory, config or {})
    for name, source in packs.items():
        write_pack(paths.cwd / FOLDER, name, source)
    return Paths.of(paths.cwd, paths.global_dir)


def trust(paths: Paths) -> None:
    """Trust the project as it is now."""
    Trust(paths.global_dir).trust(take_inventory(paths.cwd / FOLDER))


async def test_a_projects_pack_runs_as_it_was_trusted_and_is_inert_after_an_edit(tmp_path: Path) -> None:
    paths = project(tmp_path, edited=VERSION.replace("{number}", "1"))
    app = Workspace.alone(paths)
    try:
        assert "edited" not in app.picture.registry.packs
        trust(paths)
        await app.reload()
        assert 1 == (await versions(app))[0]
        write_pack(paths.cwd / FOLDER, "edited", VERSION.replace("{number}", "2"))
        reply = await app.run("edited.version()")
        assert reply.is_error and "edited" in reply.texts[0]
        trust(paths)
        await app.reload()
        assert 2 == (await versions(app))[0]
    finally:
        await app.aclose()


async def test_a_projects_pack_has_of_the_users_secrets_only_those_that_the_user_grants(tmp_path: Path) -> None:
    config = {"workers": {"packs": {"secretive": {"secrets": ["GIVEN"]}}}}
    paths = project(tmp_path, config, secretive=SECRETIVE)
    secrets = paths.global_dir / "secrets.yaml"
    secrets.write_text("GIVEN: canary-given-1\nKEPT: canary-kept-2\n")
    secrets.chmod(0o600)
    app = Workspace.alone(paths, trust_project=True)
    try:
        program = "[secretive.has(name='GIVEN'), secretive.has(name='KEPT'), secretive.has(name='PATH')]"
        assert "[true,false,false]" == value_of(await app.run(program))
    finally:
        await app.aclose()


async def test_the_users_own_pack_has_what_it_declares_and_nothing_else(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {})
    (paths.global_dir / "secrets.yaml").write_text("GIVEN: canary-given-1\nOTHER: canary-other-3\n")
    (paths.global_dir / "secrets.yaml").chmod(0o600)
    write_pack(paths.global_dir, "secretive", SECRETIVE)
    app = Workspace.alone(paths)
    try:
        program = "[secretive.has(name='GIVEN'), secretive.has(name='KEPT'), secretive.has(name='OTHER')]"
        assert "[true,false,false]" == value_of(await app.run(program))
    finally:
        await app.aclose()


@pytest.mark.parametrize(("settings", "words"), [({"limit": "many"}, "limit"), ({"limits": 4}, "limits")])
async def test_settings_are_checked_where_the_pack_runs(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    paths = paths_in(tmp_path, {"tools": {"secretive": settings}})
    write_pack(paths.global_dir, "secretive", SECRETIVE)
    app = Workspace.alone(paths)
    try:
        error = error_of(await app.run("secretive.limit()"))
        assert "secretive" in error and words in error
    finally:
        await app.aclose()


async def test_settings_of_a_pack_reach_its_worker(tmp_path: Path) -> None:
    paths = paths_in(tmp_path, {"tools": {"secretive": {"limit": 7}}})
    write_pack(paths.global_dir, "secretive", SECRETIVE)
    app = Workspace.alone(paths)
    try:
        assert "7" == value_of(await app.run("secretive.limit()"))
    finally:
        await app.aclose()
