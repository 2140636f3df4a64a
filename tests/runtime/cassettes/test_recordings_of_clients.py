"""The setting `recording` keeps what clients' programs call, so that it can be replayed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from ot.config.load import load_config
from ot.config.principal import os_user
from ot.config.trust import Trust
from ot.errors import ConfigError
from ot.execution.caller import Caller
from ot.runtime.cassettes.programs import programs_with_cassettes, replay_program
from ot.stats.rows import CLI
from run_app import paths_in, running_app

pytestmark = pytest.mark.anyio

CLIENT = Caller(os_user(), client="a client")
READ = "text = file.read(path='a.txt')\ntext.upper()"


def config(most: int = 3) -> dict[str, Any]:
    """Return settings that record."""
    return {"recording": {"directory": "programs", "most": most}}


def kept(directory: Path) -> list[Path]:
    """Return the files that are kept."""
    return sorted((directory / "user" / "programs").glob("*"))


async def test_a_client_s_run_leaves_a_program_and_a_cassette_that_replay(tmp_path: Path) -> None:
    async with running_app(tmp_path, config=config()) as app:
        (app.paths.cwd / "a.txt").write_text("words")
        reply = await app.run(f"```python\n{READ}\n```", CLIENT)
        (app.paths.cwd / "a.txt").unlink()
        (cassette, program) = kept(tmp_path)
        assert (cassette.name, program.read_text()) == (f"{program.stem}.cassette.yaml", READ)
        assert program.stem.endswith(reply.run)
        assert {stat.S_IMODE(file.stat().st_mode) for file in (cassette, program)} == {0o600}
        (found,) = programs_with_cassettes(app.paths.global_dir, None)
        assert await replay_program(found, app.run, str) == []


async def test_only_the_newest_are_kept_and_other_files_stay(tmp_path: Path) -> None:
    async with running_app(tmp_path, config=config(most=2)) as app:
        (app.paths.global_dir / "programs").mkdir()
        mine = [app.paths.global_dir / "programs" / name for name in ("mine.py", "mine.cassette.yaml")]
        for file in mine:
            file.write_text("1")
        for _ in range(4):
            await app.run("ot.health()", CLIENT)
        assert len(kept(tmp_path)) == 2 * 2 + len(mine)
        assert all(file in kept(tmp_path) for file in mine)


@pytest.mark.parametrize(
    ("command", "caller", "more"),
    [
        (READ, Caller(os_user(), client=CLI), {}),
        (READ, CLIENT, {"session": "mine"}),
        ("1 + 1", CLIENT, {}),
        ("file.reed(path='a.txt')", CLIENT, {}),
    ],
    ids=["a command's", "in a session", "without calls", "with a mistake"],
)
async def test_other_runs_are_not_recorded(command: str, caller: Caller, more: Any, tmp_path: Path) -> None:
    async with running_app(tmp_path, config=config()) as app:
        (app.paths.cwd / "a.txt").write_text("words")
        await app.run(command, caller, **more)
    assert kept(tmp_path) == []


async def test_a_place_that_cannot_be_written_fails_no_run(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"recording": {"directory": "/dev/null/x"}}) as app:
        assert (await app.run("ot.health()", CLIENT)).is_error is False


async def test_programs_cannot_read_recordings(tmp_path: Path) -> None:
    place = tmp_path / "work" / "kept"
    async with running_app(tmp_path, config={"recording": {"directory": str(place)}}) as app:
        await app.run("ot.health()", CLIENT)
        assert len(list(place.glob("*.py"))) == 1
        reply = await app.run("file.list(path='kept')", CLIENT)
    assert reply.is_error


def test_a_project_cannot_have_runs_recorded(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    (paths.cwd / ".onetool").mkdir()
    (paths.cwd / ".onetool" / "onetool.yaml").write_text("recording: {directory: ../../out}\n")
    with pytest.raises(ConfigError, match="recording may not be set by a project"):
        load_config(paths.look_again(), Trust(paths.global_dir), trust_project=True)
