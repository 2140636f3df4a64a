"""The tutorial about servers, followed from its first line to its last with servers from the registries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from console_blocks import typed_commands
from test_first_pack import check
from test_readme import ROOT
from uv_outside import uv_cache_dir

PAGE = ROOT / "docs/tutorial/bring-your-servers.md"


@pytest.mark.timeout(400)
def test_the_tutorial_about_servers_does_what_it_says(tmp_path: Path, home: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_CACHE_DIR": uv_cache_dir(),
    }
    typed = typed_commands(PAGE.read_text(encoding="utf-8"))
    assert len(typed) >= 11
    for entry in typed:
        check(entry, tmp_path, environment)
    assert '"Asia/Tokyo"' in (home / "notes.jsonl").read_text()
