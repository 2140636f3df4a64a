"""The agents of the page about frameworks answer from what their programs returned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from test_pack_pages import written

SCRIPT = Path(__file__).with_name("agent_frameworks.py")


def test_the_agents_of_the_page_answer_from_what_their_programs_returned(tmp_path: Path) -> None:
    page, work = tmp_path / "page", tmp_path / "work"
    page.mkdir()
    work.mkdir()
    names = written(page, "use-from-agent-frameworks")
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "b.txt").write_text("three\n")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, SCRIPT, page], cwd=work, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert set(answers.values()) == {"3 lines"}
    assert [f"{name}.py" for name in answers] == names
