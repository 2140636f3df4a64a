"""The examples of the library's page print what the page shows."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from console_blocks import Typed
from docs_blocks import ROOT

PAGE = (ROOT / "docs/reference/library.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(?:python|text|yaml) title="(?P<file>[^"]+)"\n(?P<text>.*?)^```', re.M | re.S)
BLOCKS = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE)}
PROGRAMS = [name for name in BLOCKS if name.endswith(".py")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(BLOCKS[name], encoding="utf-8")
    runpy.run_path(name, run_name="__main__")
    printed = capsys.readouterr().out
    assert Typed(name, BLOCKS[name.replace(".py", ".txt")]).is_kept_by(printed), printed


def test_every_python_block_of_the_page_is_one_of_these() -> None:
    assert PAGE.count("```python") == len(PROGRAMS) == 3
