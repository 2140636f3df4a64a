"""The page of the command line says what the commands say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_of_the_command_line_is_current() -> None:
    code = "import sys; sys.path.insert(0, 'docs'); import make_cli_page; sys.stdout.write(make_cli_page.page())"
    # In a process of its own: the width of the help texts is set before the library is imported.
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert made.stdout == page, "run: python docs/make_cli_page.py"
