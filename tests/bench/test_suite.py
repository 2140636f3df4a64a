"""Tasks are read from YAML, and a malformed file is refused with what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.four_ways.suite import read_suite

from ot.errors import ConfigError

TASK = """
tasks:
  - name: one
    ask: What is in $cwd?
    answer: \\d+
    calls:
      - - files.read: {path: $cwd/a}
        - files.read: {path: $cwd/b}
      - [files.write: {path: $cwd/c, lines: [1, $way]}]
    program: files.read(path="$cwd/a")
"""


def test_a_task_has_turns_of_calls_and_programs(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(TASK)
    (task,) = read_suite(tmp_path / "suite.yaml").tasks
    assert [[tool for tool, _ in turn] for turn in task.turns] == [["files.read", "files.read"], ["files.write"]]
    assert task.tools == ["files.read", "files.write"]
    assert task.queries == ("What is in $cwd?",)
    filled = task.fill({"cwd": "/work", "way": "flat"})
    assert filled.program == ('files.read(path="/work/a")',)
    assert filled.turns[1][0][1] == {"path": "/work/c", "lines": [1, "flat"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tasks: [{name: a, ask: b}]", "answer"),
        ("tasks: [{name: a, ask: b, answer: '('}]", "not a regular expression"),
        ("tasks: [{name: a, ask: b, answer: c, colour: red}]", "colour"),
        ("tasks: [", "is not YAML"),
        ("just a text", "malformed"),
    ],
)
def test_a_malformed_suite_says_what_is_wrong(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        read_suite(file)
