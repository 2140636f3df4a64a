"""Saved programs and cassettes: what a saved program calls is recorded and answered, and it is run as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.runtime.cassettes.cassette import read_cassette
from ot.runtime.cassettes.programs import programs_with_cassettes, replay_program
from ot.runtime.cassettes.recording import Recording
from ot.workspace import Workspace
from run_app import running_app

pytestmark = pytest.mark.anyio

COUNT = '''
def lines(path: str = "a.txt") -> int:
    """Count the lines of a file."""
    return file.read(path=path).count("\\n")
'''
CALL = 'count.lines(path="a.txt")'


def save(app: Workspace, text: str) -> Path:
    """Save *text* as the program 'count', and return its file."""
    place = app.paths.global_dir / "programs"
    place.mkdir(exist_ok=True)
    (saved := place / "count.py").write_text(text)
    saved.chmod(0o600)
    return saved


async def record(app: Workspace, saved: Path, call: str = CALL) -> None:
    """Record *call* in the cassette beside the program."""
    await app.reload()
    tape = Recording(str, saved.with_name("count.cassette.yaml"), call)
    reply = await app.run(call, tape=tape)
    assert not reply.is_error, reply.text
    assert not tape.finish()


async def differences(app: Workspace) -> list[str]:
    """Return what 'onetool test' tells of the program."""
    await app.reload()
    (found,) = programs_with_cassettes(app.paths.global_dir, None)
    return await replay_program(found, app.run, str)


@pytest.mark.usefixtures("each_engine")
async def test_a_saved_program_is_tested_against_what_it_called_when_it_was_recorded(
    tmp_path: Path,
) -> None:
    async with running_app(tmp_path) as app:
        (app.paths.cwd / "a.txt").write_text("one\ntwo\n")
        saved = save(app, COUNT)
        await record(app, saved)
        cassette = read_cassette(saved.with_name("count.cassette.yaml"))
        assert (["file.read"], 2) == ([call.call for call in cassette.calls], cassette.result["value"])
        (app.paths.cwd / "a.txt").unlink()
        assert [] == await differences(app)
        save(app, COUNT.replace('count("\\n")', 'count("o")'))
        assert [] == await differences(app), "one and two have two of them, too"
        save(app, COUNT.replace('count("\\n")', 'count("e")'))
        assert ["value: recorded 2, now 1"] == await differences(app)
        save(app, COUNT.replace("file.read(path=path)", "file.read(path=path, start=2)"))
        assert any("the nearest recorded call is file.read" in line for line in await differences(app))


async def test_a_cassette_that_does_not_say_how_a_saved_program_was_called_tests_nothing(tmp_path: Path) -> None:
    async with running_app(tmp_path) as app:
        (app.paths.cwd / "a.txt").write_text("one\n")
        saved = save(app, COUNT)
        await app.reload()
        tape = Recording(str, saved.with_name("count.cassette.yaml"))
        await app.run(CALL, tape=tape)
        assert not tape.finish()
        (told,) = await differences(app)
        assert "does not say how the saved program was called" in told
