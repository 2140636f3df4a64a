"""Calls of the pack ``file`` that take long: helper processes do what the server itself would do."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from ot.execution import heavy_calls
from ot.workspace import Workspace
from ot_tools import _helper
from pace import PATIENCE
from run_app import running_app, value_of

pytestmark = pytest.mark.anyio

READS = [
    "file.list(depth=2, hidden=True)",
    "file.tree()",
    "file.glob(pattern='**/*')",
    "file.search(pattern='mil+k', context=1)",
    "sorted(os.listdir('src'))",
    "[str(path) for path in Path('.').iterdir()]",
]
CHANGES = [
    "file.edit(path='notes.txt', old='buy', new='sell', replace_all=True)",
    "file.edit(path='notes.txt', old='sell milk', new='sell tea', dry_run=True)",
    "file.read(path='notes.txt')",
    "file.patch(diff='--- a/notes.txt\\n+++ b/notes.txt\\n@@ -9 +9 @@\\n-sell milk\\n+sell tea\\n"
    "--- /dev/null\\n+++ b/new/one.txt\\n@@ -0,0 +1 @@\\n+one\\n')",
    "[file.read(path=path) for path in ('notes.txt', 'new/one.txt')]",
    "file.delete(path='new', recursive=True)",
    "file.edit(path='notes.txt', old='sell tea', new='buy milk')",
    "file.edit(path='notes.txt', old='sell', new='buy', count=2)",
]
"""The last ones bring everything back."""
REFUSED = [
    "file.list(path='missing')",
    "file.tree(path='../outside')",
    "file.glob(pattern='/etc/*')",
    "file.search(pattern='(')",
    "file.search(pattern='x', path='out/x')",
    "file.list(path='notes.txt')",
    "file.list(path='.onetool/secrets.yaml')",
    "file.edit(path='.onetool/secrets.yaml', old='key', new='x')",
    "file.edit(path='.git/config', old='key', new='x')",
    "file.edit(path='out/x', old='x', new='y')",
    "file.edit(path='notes.txt', old='beer', new='y')",
    "file.edit(path='notes.txt', old='buy', new='y')",
    "file.patch(diff='--- a/.git/config\\n+++ b/.git/config\\n@@ -1 +1 @@\\n-a\\n+b\\n', dry_run=True)",
    "file.patch(diff='--- a/notes.txt\\n+++ b/notes.txt\\n@@ -1 +1 @@\\n-a\\n+b\\n')",
    "file.patch(diff='--- /dev/null\\n+++ b/notes.txt\\n@@ -0,0 +1 @@\\n+a\\n')",
]
PROGRAM = """
import os
from pathlib import Path
def text(read):
    try:
        return repr(read())
    except Exception as error:
        return type(error).__name__ + ': ' + str(error)
[text(read) for read in [{reads}]]
"""
ALL = PROGRAM.format(reads=", ".join(f"lambda: {read}" for read in (*READS, *CHANGES, *REFUSED)))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Workspace]:
    config = {"limits": {"call_seconds": PATIENCE}, "policy": {"allow": ["file.*"]}}
    async with running_app(tmp_path, config=config) as app:
        work, outside = tmp_path / "work", tmp_path / "outside"
        (work / "src").mkdir()
        (work / ".git").mkdir()
        (work / ".git" / "config").write_text("key\n")
        (work / ".onetool").mkdir()
        (work / ".onetool" / "secrets.yaml").write_text("key: milk\n")
        (work / ".gitignore").write_text("*.log\n")
        (work / "notes.txt").write_text("buy bread\nbuy milk\nbuy nothing\n")
        (work / "src" / "app.py").write_text("milk = 1\n")
        (work / "src" / "app.log").write_text("milk\n")
        outside.mkdir()
        (outside / "x").write_text("x")
        (work / "out").symlink_to(outside)
        yield app


def helpers() -> list[psutil.Process]:
    """Return the processes of helpers, and not their guards."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.nice() == _helper.NICENESS]


@pytest.fixture
def all_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing of a heavy call be done in this process."""
    monkeypatch.setattr(heavy_calls, "HERE", -1)
    monkeypatch.setattr(heavy_calls, "HERE_WITH_HELPERS", -1)


async def test_a_helper_answers_and_refuses_in_the_servers_own_words(
    app: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = value_of(await app.run(ALL))
    assert helpers() == []  # a few files need none
    monkeypatch.setattr(heavy_calls, "HERE", -1)
    monkeypatch.setattr(heavy_calls, "HERE_WITH_HELPERS", -1)
    assert value_of(await app.run(ALL)) == here
    (helper,) = helpers()
    assert helper.nice() > psutil.Process().nice()


@pytest.mark.usefixtures("all_away")
async def test_a_helper_is_killed_when_its_call_is_cancelled_and_another_takes_the_next(app: Workspace) -> None:
    assert value_of(await app.run("file.glob(pattern='n*')[0]")) == "notes.txt"
    (helper,) = helpers()
    helper.suspend()  # it takes long
    run = asyncio.create_task(app.run("file.tree()"))
    async with asyncio.timeout(PATIENCE):
        while not any(worker.in_flight for worker in app.host.workers._all()):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        run.cancel()
        await asyncio.wait([run])
        await asyncio.to_thread(helper.wait, PATIENCE)
    assert value_of(await app.run("file.glob(pattern='n*')[0]")) == "notes.txt"


@pytest.mark.usefixtures("all_away")
async def test_helpers_end_with_the_server_and_when_they_are_idle(app: Workspace) -> None:
    await app.run("file.tree()")
    (first,) = helpers()
    (worker,) = app.host.workers._all()
    worker.last_used -= worker.idle_seconds
    app.host.workers.reap_idle()
    await asyncio.to_thread(first.wait, PATIENCE)
    await app.run("file.tree()")
    (second,) = helpers()
    await app.aclose()
    assert not second.is_running() or second.status() == psutil.STATUS_ZOMBIE


def test_a_server_that_imports_the_helpers_module_stays_as_it_is() -> None:
    assert _helper.__name__ in sys.modules
    assert os.nice(0) < _helper.NICENESS
