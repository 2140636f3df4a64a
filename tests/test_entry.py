"""The way in: quick, and the same as the long way."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from checkout import ROOT
from cli.command import OneTool
from ot.version import installed_version

TURNS = 9
MOST = 4
"""Times of ``python -c pass``: what --version and --help may take."""
LIBRARIES = {"typer", "click", "rich", "pydantic", "fastmcp", "mcp", "yaml", "jinja2", "griffe", "asyncio", "importlib"}


@pytest.fixture
def onetool(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OneTool:
    """The command, in an empty directory."""
    return OneTool(tmp_path, home, monkeypatch, capsys)


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_take_at_most_four_times_as_long_as_python_itself(argument: str) -> None:
    # What is measured is the installed command, compiled as an installer compiles it.
    source = Path(__file__).parents[1] / "src" / "ot"
    files = [str(source / name) for name in ("__init__.py", "entry.py", "version.py", "cli")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-l", *files], check=True)
    control = [sys.executable, "-c", "pass"]
    command = [str(Path(sys.executable).with_name("onetool")), argument]
    turns = [(_seconds(control), _seconds(command)) for _ in range(TURNS)]
    bare, ours = (statistics.median(column) for column in zip(*turns, strict=True))
    assert ours <= MOST * bare, f"{ours * 1000:.0f} ms, python alone {bare * 1000:.0f} ms"


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_nothing_of_the_command_line_and_its_libraries(onetool: OneTool, argument: str) -> None:
    plain = onetool.process(argument)
    traced = onetool.process(argument, PYTHONPROFILEIMPORTTIME="1")
    assert (traced.code, traced.out) == (0, plain.out)
    loaded = {line.rpartition("|")[2].strip() for line in traced.err.splitlines()}
    after = traced.err[traced.err.index("ot.entry") :]
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in after.splitlines()[1:]}
    assert names.isdisjoint(LIBRARIES)
    assert {name for name in loaded if name.startswith("ot.")} <= {
        "ot.entry", "ot.version", "ot.cli", "ot.cli.overview", "ot.cli.command_table", "ot.cli.exit_codes", "ot.hooks"
    }  # fmt: skip


def test_the_version_is_the_one_that_the_distribution_has() -> None:
    assert installed_version() == version("onetool-run")


def test_without_the_distribution_the_version_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onetool_run_more-2.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "gone")])
    assert installed_version.__wrapped__() == "0+unknown"
    (tmp_path / "onetool_run-1.2rc1.dist-info").mkdir()
    assert installed_version.__wrapped__() == "1.2rc1"


def test_who_works_in_the_checkout_has_its_packs() -> None:
    for folder in (ROOT, ROOT / "packs"):
        command = [str(Path(sys.executable).with_name("onetool")), "list", "--json"]
        listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        assert {"file", "rg"} <= {pack["name"] for pack in json.loads(listed.stdout)}


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_a_module_in_the_working_directory_is_not_imported(onetool: OneTool, argument: str) -> None:
    for name in ("functools", "typing", "collections"):
        (onetool.cwd / f"{name}.py").write_text("raise SystemExit('it was imported')")
    assert onetool.process(argument, PYTHONPATH=str(onetool.cwd)).code == 0
