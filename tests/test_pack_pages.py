"""The examples of the pages for authors of packs run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from run_app import running_app
from uv_outside import uv_cache_dir

ROOT = Path(__file__).parents[1]
TITLED = re.compile(r'^```(?:python|toml) title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    assert written(tmp_path, "test-a-pack") == ["weather_tools.py", "test_weather_tools.py", "test_with_the_stub.py"]
    assert_passing(tmp_path, 3)


def test_the_tests_of_the_page_about_typed_tools_pass(tmp_path: Path) -> None:
    names = ["server.py", "tool_note.py", "notes_server.py", "notes_pack.py", "pyproject.toml", "test_tool_note.py"]
    assert written(tmp_path, "write-typed-tools") == names
    assert len((tmp_path / "server.py").read_text().splitlines()) <= 22
    assert_passing(tmp_path, 4)


@pytest.mark.anyio
async def test_the_distribution_of_the_page_about_typed_tools_is_built_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, site = tmp_path / "notes", tmp_path / "site"
    notes.mkdir()
    written(notes, "write-typed-tools")
    install(notes, site)
    monkeypatch.syspath_prepend(site)
    try:
        async with running_app(tmp_path) as app:
            reply = await app.run('notes.find(words="Ada")[0]["due"]')
    finally:
        for name in ("notes_pack", "tool_note"):
            sys.modules.pop(name, None)
    assert reply.texts == ("2026-03-01", "note: notes.find: 1 found")


def install(distribution: Path, target: Path) -> None:
    """Build what lies in *distribution* and install it into *target*."""
    command = ["uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", target, distribution]
    subprocess.run(command, env={**os.environ, "UV_CACHE_DIR": uv_cache_dir()}, check=True, timeout=100)


def written(directory: Path, page: str) -> list[str]:
    """Write the files that a page shows, and return their names."""
    blocks = list(TITLED.finditer((ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")))
    for block in blocks:
        (directory / block["file"]).write_text(block["text"], encoding="utf-8")
    return [block["file"] for block in blocks]


def assert_passing(directory: Path, count: int) -> None:
    """Run the tests of *directory* as their author would."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:langsmith_plugin",
        "-W",
        "error",
    ]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout
    assert f"{count} passed" in done.stdout
