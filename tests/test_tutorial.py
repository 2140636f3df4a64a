"""The tutorial's commands, typed in this checkout, print what the page says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from console_blocks import Typed, typed_commands
from test_readme import ROOT, check

PAGE = ROOT / "docs/tutorial/first-program.md"
TYPED = [entry for entry in typed_commands(PAGE.read_text()) if not entry.command.startswith("uv ")]


@pytest.fixture(scope="module")
def environment(homes: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(homes), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: typed.command[:40])
def test_a_command_of_the_tutorial_does_what_it_says(typed: Typed, environment: dict[str, str]) -> None:
    check(typed, ROOT, environment)
