"""Draws docs/pictures/first-task.svg: the README's program at a terminal, with two real servers and its question.

``python docs/make_picture.py`` types the command that is shown, answers as it is shown, and draws what came back.
It needs ``onetool``, ``uvx``, ``npx`` and ``git`` on the PATH. A test plays the same task and fails when the picture
shows anything else.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/pictures/first-task.svg"
PROGRAM = re.compile(r'^```python title="fixes.py"\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = "onetool run -f fixes.py"
COLUMNS = 62
SECONDS = 120
QUESTION = re.compile(r"(\[n\]o|\[y/N\]): $")
"""How every question of OneTool ends at a terminal."""
STYLE = re.compile(r"\x1b\[[0-9;]*m")
STARTS = re.compile(r"^starting .*\n", re.MULTILINE)
"""Servers that take long to start are told of: how long they take depends on the machine."""
LOADED_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
GREEN, YELLOW, CYAN, GREY = (152, 195, 121), (229, 192, 123), (86, 182, 194), (220, 223, 228)
DARK = TerminalTheme((30, 34, 42), GREY, [GREY, GREY, GREEN, YELLOW, GREY, GREY, CYAN, GREY])

SERVERS = {
    "git": {"command": "uvx", "args": ["mcp-server-git"]},
    "notes": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
}
COMMITS = (
    "Fix the timeout of slow uploads",
    "Add a dark theme",
    "Fix a crash on empty files",
    "Let the search ignore accents",
    "Fix dates before 1970",
    "Update the dependencies",
)


def users_home(home: Path) -> None:
    """Make *home* that of somebody whose Claude Code knows two servers."""
    notes = {**SERVERS["notes"], "env": {"MEMORY_FILE_PATH": str(home / "notes.jsonl")}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {**SERVERS, "notes": notes}}, indent=2))


def users_project(project: Path, readme: str) -> None:
    """Make *project* a repository with a short history, and the program of *readme* in it."""
    project.mkdir()
    git = ["git", "-C", str(project), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for subject in COMMITS:
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", subject], check=True)
    found = PROGRAM.search(readme)
    assert found, "README.md has no block titled fixes.py"
    (project / "fixes.py").write_text(found[1])


def typed(command: str, cwd: Path, environment: Mapping[str, str], shell: Sequence[str] = ("bash", "-c")) -> str:
    """Return what a terminal shows of *command*, with a yes typed after every question."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*shell, command],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd,
        env={**environment, "TERM": "xterm", "NO_COLOR": "1"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        return _conversation(ours)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait(10)
        os.close(ours)


def _conversation(terminal: int) -> str:
    shown, end, answered = "", time.monotonic() + SECONDS, 0
    while select.select([terminal], [], [], max(end - time.monotonic(), 0))[0]:
        try:
            shown += os.read(terminal, 65536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # nobody holds the other end: the command has ended
            return STARTS.sub("", STYLE.sub("", shown))
        if len(shown) > answered and QUESTION.search(shown):
            answered = len(shown)
            os.write(terminal, b"y\n")
    raise TimeoutError(f"it did not end within {SECONDS} s: {shown[-2000:]}")


def picture(shown: str) -> str:
    """Return the picture of a terminal with the command and what it has *shown*."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), legacy_windows=False)
    console.print(Text.assemble(("$ ", "bold green"), (COMMAND, "bold")))
    question, _, reply = shown.strip().rpartition("\n")
    asked, _, answer = question.rpartition(" ")
    console.print(Text.assemble(f"{asked} ", (answer, "bold yellow")))
    console.print(Text(reply.strip(), "bold cyan"))
    drawn = console.export_svg(title="one program, two servers", theme=DARK, unique_id="first-task")
    drawn = LOADED_FONT.sub("", drawn)  # nothing is loaded from elsewhere
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


def main() -> None:
    """Play the task in an empty home, and draw it."""
    with tempfile.TemporaryDirectory() as place:
        home, project = Path(place, "home"), Path(place, "shop")
        home.mkdir()
        users_home(home)
        users_project(project, (ROOT / "README.md").read_text(encoding="utf-8"))
        environment = {**os.environ, "HOME": str(home)}
        typed("onetool init --from claude-code --yes", project, environment)
        PICTURE.write_text(picture(typed(COMMAND, project, environment)), encoding="utf-8")


if __name__ == "__main__":
    main()
