"""Draws docs/pictures/demo.svg: what ``onetool demo`` shows at a terminal to somebody who answers y.

``python docs/make_picture.py`` plays it and draws what came back, in its own colours. It needs ``onetool`` and ``git``
on the PATH. A test plays it again and fails when the picture shows anything else. Here are also the belongings of the
newcomer who does what README says.
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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/pictures/demo.svg"
DEMO = "onetool demo --fast"
PROGRAM = re.compile(r'^```python title="fixes.py"\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = "onetool run -f fixes.py"
COLUMNS = 80
PIXELS = 680
SECONDS = 120
PLAIN = {"TERM": "xterm", "NO_COLOR": "1"}
COLOURED = {"TERM": "xterm", "COLORTERM": "", "COLUMNS": str(COLUMNS), "TMPDIR": "/tmp"}
PLACE = re.compile(r"onetool-demo-\w{8}")
"""The directory of a demo, whose name is another each time."""
QUESTION = re.compile(r"(\[n\]o|\[y/N\]): $")
"""How every question of OneTool ends at a terminal."""
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Bold and dim, which stay where there are no colours."""
STARTS = re.compile(r"^starting .*\n", re.MULTILINE)
"""Servers that take long to start are told of: how long they take depends on the machine."""
LOADED_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
GREY, RED, GREEN, YELLOW = (220, 223, 228), (224, 108, 117), (152, 195, 121), (229, 192, 123)
BLUE, MAGENTA, CYAN = (97, 175, 239), (198, 120, 221), (86, 182, 194)
DARK = TerminalTheme((30, 34, 42), GREY, [GREY, RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, GREY])

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


def typed(
    command: str,
    cwd: Path,
    environment: Mapping[str, str],
    shell: Sequence[str] = ("bash", "-c"),
    terminal: Mapping[str, str] = PLAIN,
) -> str:
    """Return what a *terminal* shows of *command*, with a yes typed after every question."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*shell, command],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd,
        env={**environment, **terminal}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        shown = _conversation(ours)
        return shown if terminal is COLOURED else STYLE.sub("", shown)
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
            return STARTS.sub("", shown)
        if len(shown) > answered and QUESTION.search(shown):
            answered = len(shown)
            os.write(terminal, b"y\n")
    raise TimeoutError(f"it did not end within {SECONDS} s: {shown[-2000:]}")


def play_demo(environment: Mapping[str, str], cwd: Path) -> str:
    """Return what the demo shows at a terminal with colours."""
    coloured = {key: value for key, value in environment.items() if key != "NO_COLOR"}
    return typed(DEMO, cwd, coloured, terminal=COLOURED)


def picture(shown: str) -> str:
    """Return the picture of a terminal with the demo and what it has *shown*."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.assemble(("$ ", "bold green"), (DEMO, "bold")))
    console.print(Text.from_ansi(PLACE.sub("onetool-demo-12345678", shown.strip())))
    drawn = console.export_svg(title="onetool demo", theme=DARK, unique_id="demo")
    drawn = LOADED_FONT.sub("", drawn)  # nothing is loaded from elsewhere
    drawn = drawn.replace("<svg ", f'<svg width="{PIXELS}" ', 1)  # without it, a page draws it as wide as itself
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


def main() -> None:
    """Play the demo, and draw it."""
    PICTURE.write_text(picture(play_demo(os.environ, ROOT)), encoding="utf-8")


if __name__ == "__main__":
    main()
