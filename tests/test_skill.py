"""The skill for agents: its frame is what clients expect, and its programs answer what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ot.config.paths import Paths
from ot.workspace import Workspace
from run_app import value_of

SKILL = Path(__file__).parents[1] / "skills/onetool/SKILL.md"
FRAME = re.compile(r"---\n(?P<head>.*?)\n---\n(?P<body>.*)", re.DOTALL)
PACK = re.compile(r'^```python title="(?P<file>(?P<pack>\w+)_tools\.py)"\n(?P<text>.*?)^```', re.M | re.S)
PROGRAM = re.compile(r"^```python\n(?P<program>.*?)^```\n\n```(?:json|text)\n(?P<answer>.*?)\n```", re.M | re.S)


def parts() -> tuple[dict[str, Any], str]:
    """Return the settings at the top of the skill, and its text."""
    found = FRAME.fullmatch(SKILL.read_text(encoding="utf-8"))
    assert found
    return yaml.safe_load(found["head"]), found["body"]


def test_the_skill_has_the_frame_that_clients_expect() -> None:
    head, body = parts()
    assert head["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert 0 < len(head["description"]) <= 1024
    assert len(body.splitlines()) < 500


@pytest.mark.anyio
async def test_the_programs_of_the_skill_answer_what_it_says(tmp_path: Path, home: Path) -> None:
    _, body = parts()
    for pack in PACK.finditer(body):
        folder = home / ".onetool/tools" / pack["pack"]
        folder.mkdir(parents=True)
        (folder / pack["file"]).write_text(pack["text"], encoding="utf-8")
    programs = list(PROGRAM.finditer(body))
    assert len(programs) == body.count("```python\n") >= 6, "every program is followed by its answer"
    app = Workspace.alone(Paths.of(tmp_path, home / ".onetool"))
    try:
        for shown in programs:
            assert value_of(await app.run(shown["program"])) == shown["answer"]
    finally:
        await app.aclose()
