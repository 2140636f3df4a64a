"""The tutorial of one tool in four ways, followed from its first line to its last, with a scripted model."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from chat.wire_server import ollama_calls, ollama_text, serving_aside
from console_blocks import STEP, check, typed_commands
from system_package import require_programs
from uv_outside import uv_cache_dir

PAGE = Path(__file__).parents[1] / "docs/tutorial/one-tool-four-ways.md"
SCRIPT = (
    ollama_calls(("lamp_switch", {"room": "attic"})),
    ollama_text("The light in the attic is on now."),
    ollama_calls(("lamp_switch", {"room": "hall"})),
    ollama_text("The light in the hall is on."),
)


@pytest.mark.timeout(240)
def test_the_tutorial_of_one_tool_in_four_ways_does_what_it_says(tmp_path: Path, home: Path) -> None:
    require_programs("espeak-ng", "sox")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_CACHE_DIR": uv_cache_dir(),
    }
    steps = list(STEP.finditer(PAGE.read_text(encoding="utf-8")))
    assert [bool(step["file"]) for step in steps] == [False, True, False, False, True, False, False, False, False]
    with serving_aside(*SCRIPT) as wire:
        for step in steps:
            if step["file"]:
                (tmp_path / step["file"]).write_text(step["text"], encoding="utf-8")
            for typed in typed_commands(step[0]):
                check(typed, tmp_path, {**environment, "OLLAMA_HOST": wire.url})
    told = [
        message["content"] for request in wire.requests for message in request["messages"] if message["role"] == "tool"
    ]
    assert told == ["The light in the attic is on.", "The light in the hall is on."]
    assert re.search(r"turn on the light", str(wire.requests[2]["messages"]))
