"""What the packs in workers share: helpers that do what the server would do, and checks of arguments."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from ot.build import IN_WORKERS
from ot.execution import heavy_calls
from ot.workspace import Workspace
from ot_sdk.numbers import check_number
from ot_tools import _helper
from pace import PATIENCE
from run_app import running_app, value_of
from server_process import process_stat

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
    found: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # the guard of one that has ended goes a moment later
            found += [child] if child.nice() == _helper.NICENESS else []
    return found


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
    assert process_stat(second.pid) is None


def test_a_server_that_imports_the_helpers_module_stays_as_it_is() -> None:
    assert _helper.__name__ in sys.modules
    assert os.nice(0) < _helper.NICENESS


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The module, which each of these packs has beside its own."""
    monkeypatch.syspath_prepend(IN_WORKERS / "_shared")
    yield importlib.import_module("arguments")
    sys.modules.pop("arguments", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(b"x", TypeError("x must be text, got b'x'"), id="bytes"),
        pytest.param(" ", ValueError("x must not be empty"), id="a blank"),
        pytest.param("x" * 11, ValueError("x has 11 characters, more than 10: shorten it"), id="too long"),
        pytest.param("a\0", ValueError(r"x must be text without NUL, got 'a\x00'"), id="a NUL"),
        pytest.param("\ud800", ValueError("x holds an unpaired surrogate"), id="an unpaired surrogate"),
    ],
)
def test_what_is_not_a_text_that_says_something_is_refused(arguments: Any, value: object, expected: Exception) -> None:
    with pytest.raises(type(expected)) as refused:
        arguments.check_text("x", value, 10)
    assert str(refused.value) == str(expected)


def test_a_text_may_be_blank_where_that_is_said_but_not_empty(arguments: Any) -> None:
    assert arguments.check_text("x", " ", 10, blank=True) == " "
    with pytest.raises(ValueError, match="x must not be empty"):
        arguments.check_text("x", "", 10, blank=True)


@pytest.mark.parametrize(
    ("value", "most", "expected"),
    [
        pytest.param(True, 10, TypeError("x must be an int, got True"), id="a truth"),
        pytest.param("1", 10, TypeError("x must be an int, got '1'"), id="a text"),
        pytest.param(0, 10_000, ValueError("x must be 1 to 10,000, got 0"), id="too small"),
        pytest.param(11, 10, ValueError("x must be 1 to 10, got 11"), id="too large"),
        pytest.param(0, None, ValueError("x must be >= 1, got 0"), id="too small without an end"),
    ],
)
def test_what_is_not_a_number_of_these_is_refused(value: object, most: int | None, expected: Exception) -> None:
    with pytest.raises(type(expected)) as refused:
        check_number("x", value, 1, most)
    assert str(refused.value) == str(expected)


@pytest.mark.parametrize("value", ["c", "", None, ["a"]], ids=["another", "nothing", "none", "a list"])
def test_what_is_none_of_the_choices_is_refused(arguments: Any, value: object) -> None:
    with pytest.raises(ValueError, match=r"x must be 'a' or 'b', got"):
        arguments.check_choice("x", value, ("a", "b"))


def test_valid_arguments_are_returned_unchanged(arguments: Any) -> None:
    assert arguments.check_text("x", "a b", 3) == "a b"
    assert check_number("x", 10, 1, 10) == 10
    assert check_number("x", 10**9, 1) == 10**9
    assert arguments.check_choice("x", "b", ("a", "b")) == "b"
