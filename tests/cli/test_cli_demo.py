"""``onetool demo`` shows real runs and leaves nothing behind; README's picture is what it shows now."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from cli.command import OneTool, interruptible
from terminal import ONETOOL, at_terminal

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs import make_picture

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux terminals")
QUESTION = "[y]es, this call · [a]lways · [n]o: "


@pytest.fixture
def belongings(home: Path) -> dict[Path, tuple[int, bytes]]:
    """A user's files; any command that reads these settings fails."""
    for name, text in {
        ".onetool/onetool.yaml": "nonsense: [",
        ".config/git/config": "[commit\n",
        ".gitconfig": "[user\n",
        ".ssh/id_ed25519": "a key\n",
        "notes.txt": "mine\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return _files(home)


def _files(home: Path) -> dict[Path, tuple[int, bytes]]:
    """Return everything below *home*: when it was changed, and what a file holds."""
    return {
        path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted((home, *home.rglob("*")))
    }


def test_the_picture_of_the_readme_is_what_the_demo_shows(
    onetool: OneTool, belongings: dict[Path, tuple[int, bytes]]
) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shown = make_picture.play_demo(environment, onetool.cwd)
    assert make_picture.picture(shown) == make_picture.PICTURE.read_text(), "run: python docs/make_picture.py"
    assert "3 fixes listed, 2 TODOs noted" in shown
    place = make_picture.PLACE.search(shown)
    assert place
    assert not Path("/tmp", place[0]).exists()
    assert _files(onetool.home) == belongings
    assert list(onetool.cwd.iterdir()) == []


def test_without_a_terminal_the_steps_are_data_and_the_answer_is_no(
    onetool: OneTool, belongings: dict[Path, tuple[int, bytes]]
) -> None:
    before = dict(os.environ)
    ended = onetool("demo", "--json")
    found = json.loads(ended.out)
    assert (ended.code, ended.err, found["as_expected"]) == (0, "", True)
    program, attempts, tokens = found["program"], found["attempts"], found["tokens"]
    assert [call["tool"] for call in program["calls"]] == ["git.log", "file.search", "memory.write"]
    assert all(call["characters"] > 100 for call in program["calls"])
    assert "+ - Fix dates before 1970" in program["question"]
    assert (program["answer"], program["is_error"]) == ("decline", True)
    assert "the user said no" in program["reply"]
    assert len(attempts) == 3
    assert all(attempt["is_error"] and "PermissionError" in attempt["reply"] for attempt in attempts)
    assert tokens["without_onetool"] == tokens["tools"] + tokens["returned"]
    assert tokens["with_onetool"] == tokens["run"] + tokens["program_and_reply"] < tokens["without_onetool"]
    assert dict(os.environ) == before
    assert _files(onetool.home) == belongings


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP])
def test_a_demo_that_is_interrupted_at_its_question_leaves_nothing_behind(
    onetool: OneTool, tmp_path: Path, sent: signal.Signals
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "COLUMNS": "60", "TMPDIR": str(temporary)}
    with at_terminal(interruptible([ONETOOL, "demo", "--fast"]), environment, onetool.cwd) as terminal:
        shown = terminal.read_until(QUESTION)
        assert [path.name[:13] for path in temporary.iterdir()] == ["onetool-demo-"]
        terminal.process.send_signal(sent)
        code, _ = terminal.end()
    assert code == 130
    assert list(temporary.iterdir()) == []
    assert not re.search(r"\x1b\[[0-9;]*3\dm", shown), "NO_COLOR is set"
    ours = re.sub(r"\x1b\[\d*m", "", shown.partition("2 of 4")[0])
    assert "subjects = " in ours
    assert [line for line in ours.splitlines() if len(line) > 60] == []
