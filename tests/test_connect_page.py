"""The page about connecting a client: its commands, typed in an empty home, do what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from console_blocks import typed_commands
from ot.config.clients.known_clients import CLIENTS

PAGE = Path(__file__).parents[1] / "docs/how-to/connect-a-client.md"


def test_the_commands_of_the_page_do_what_it_says(home: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    typed = typed_commands(PAGE.read_text())
    assert len(typed) == 4
    for entry in typed:
        done = subprocess.run(
            ["bash", "-c", entry.command], cwd=home, env=environment, capture_output=True, text=True, timeout=60
        )
        assert entry.is_kept_by(done.stdout), f"$ {entry.command}\n{done.stdout}{done.stderr}"


def test_the_page_names_every_client() -> None:
    page = PAGE.read_text()
    assert [name for name, client in CLIENTS.items() if f"| {client.title} | `{name}` |" not in page] == []
