"""What every test gets: one event loop, a home of its own, and laws that are tried the same way each time."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cli.command import OneTool
from scenario_outcomes import ScenarioOutcomes
from stored_durations import StoredDurations, sort_longest_first

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100, database=None)
settings.load_profile("ci")

OURS = ("OT_", "ONETOOL_")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run store how long each test takes."""
    parser.addoption("--store-durations", type=Path, metavar="FILE", help="write the seconds of each test into FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Let a session fail when a scenario's tests were all skipped, and store what tests took if that is asked for."""
    config.pluginmanager.register(ScenarioOutcomes())
    if (file := config.getoption("--store-durations")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(StoredDurations(file))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect twelve thousand tests without looking for garbage among them, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long."""
    sort_longest_first(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how long each step of the walkthrough took, whichever process walked it."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for table in [value for name, value in report.user_properties if name == "walkthrough"]:
            terminalreporter.section("walkthrough")
            terminalreporter.write_line(str(table))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The loop that the server itself runs on."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where homes are made; fixtures that live longer than a test see a home here too, never the developer's."""
    directory = tmp_path_factory.mktemp("homes", numbered=False)
    # A socket's path is short, and that of a test's directory is not.
    # A server that was told to end may still have something to write there when it is removed.
    made = tempfile.TemporaryDirectory(prefix="ot", dir="/tmp", ignore_cleanup_errors=True)
    with pytest.MonkeyPatch.context() as patch, made as runtime:
        move_home(patch, directory)
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        yield directory
        end_shared_servers()


@pytest.fixture(autouse=True)
def home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory that belongs to one test."""
    directory = Path(tempfile.mkdtemp(dir=homes))
    move_home(monkeypatch, directory)
    return directory


@pytest.fixture
def onetool(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OneTool:
    """The command, in an empty directory, of a user without settings."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    return OneTool(cwd, home, monkeypatch, capsys)


def end_shared_servers() -> None:
    """End what tests of connected clients have started and no longer need."""
    from ot.cli.sharing.running_servers import running_servers, stop

    for server in running_servers():
        stop(server, now=True)


def move_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Let everything that looks for the user's files find *home*, and no setting of OneTool from outside."""
    patch.setenv("HOME", str(home))
    patch.setenv("USERPROFILE", str(home))
    for name in list(os.environ):
        if name.startswith(OURS) or (name.startswith("XDG_") and name.endswith("_HOME")):
            patch.delenv(name)
