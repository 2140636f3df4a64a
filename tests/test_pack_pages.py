"""The examples of the pages for authors of packs run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from test_readme import ROOT

TITLED = re.compile(r'^```python title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/test-a-pack.md").read_text(encoding="utf-8")
    files = [block["file"] for block in TITLED.finditer(page)]
    assert files == ["weather_tools.py", "test_weather_tools.py", "test_with_the_stub.py"]
    for block in TITLED.finditer(page):
        (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
