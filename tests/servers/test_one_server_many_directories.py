"""A user's server is one server, whatever directory it is used from: known everywhere, and never a false alarm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ot.config.paths import Paths
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.workspace import Workspace
from run_app import value_of
from servers.desk import fake

pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's directory whose server refuses every call once it counts as changed."""
    user = tmp_path / "user"
    user.mkdir()
    config = {"servers": {"fake": fake()}, "policy": {"changed_definitions": "block", "allow": ["fake.*"]}}
    (user / "onetool.yaml").write_text(json.dumps(config))
    return user


async def in_directory(cwd: Path, user: Path, *commands: str) -> list[str]:
    """Return what a server that works in *cwd* replies to *commands*, and end it."""
    cwd.mkdir()  # noqa: ASYNC240 - nothing else is under way
    app = Workspace.alone(Paths.of(cwd, user), engine=PortableEngine())
    try:
        return [value_of(await app.run(command)) for command in commands]
    finally:
        await app.aclose()


async def test_twenty_directories_raise_no_alarm_and_share_one_catalogue(tmp_path: Path, user: Path) -> None:
    for number in range(20):
        echoed, health = await in_directory(
            tmp_path / f"work{number}", user, "fake.echo(text='here')", "ot.health()['proxy']"
        )
        assert echoed == "here"
        assert "changed" not in health, health
    kinds = [file.name.split(".", 1)[1] for file in (user / "servers").glob("*.json")]
    assert sorted(kinds) == ["pins.json", "shapes.json", "tools.json"]


async def test_search_knows_a_server_in_a_directory_never_seen_before(tmp_path: Path, user: Path) -> None:
    await in_directory(tmp_path / "first", user, "fake.echo(text='x')")
    found, packs, health = await in_directory(
        tmp_path / "second", user, "ot.tools(pattern='echo')", "ot.packs()", "ot.health()['proxy']"
    )
    assert "fake.echo" in found
    assert "not been asked" not in packs
    assert "disconnected" in health
