"""The examples of the pages for authors of packs run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TITLED = re.compile(r'^```python title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    assert written(tmp_path, "test-a-pack") == ["weather_tools.py", "test_weather_tools.py", "test_with_the_stub.py"]
    assert_passing(tmp_path, 3)


def test_the_tests_of_the_page_about_typed_tools_pass(tmp_path: Path) -> None:
    names = ["server.py", "tool_note.py", "notes_server.py", "notes_pack.py", "test_tool_note.py"]
    assert written(tmp_path, "write-typed-tools") == names
    assert len((tmp_path / "server.py").read_text().splitlines()) <= 22
    assert_passing(tmp_path, 4)


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
