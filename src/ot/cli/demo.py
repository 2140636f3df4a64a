"""onetool demo: a program, its question, attempts to leave the sandbox and the tokens, in a place made for it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE, INTERRUPTED, NOT_FOUND, OK
from ot.cli.terminal import Screen, echo_json, fail
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.execution.caller import Answer, AskUser, Caller, Question
    from ot.runtime.reply import Reply
    from ot.runtime.run_events import RunEvent
    from ot.workspace import Workspace

PROGRAM = """\
subjects = [c["subject"] for c in git.log(files=True)]
fixes = [f"- {s}" for s in subjects if s[:3] == "Fix"]
todos = file.search(pattern="TODO", path="src")
memory.write(text=f"Open: {todos}", tags=["1.4"])
new = "\\n".join(["## 1.4", *fixes, "", "## 1.3"])
file.edit(path="CHANGELOG.md", old="## 1.3", new=new)
f"{len(fixes)} fixes listed, {len(todos)} TODOs noted"
"""
PACKS = ("git", "file", "memory")
"""Those of the program: none needs a download or a key."""
ATTEMPTS = (
    'open("../.ssh/id_ed25519").read()',
    'import socket; socket.create_connection(("192.0.2.1", 443))',
    'import subprocess; subprocess.run(["sh", "-c", "id"])',
)
SETTINGS = "policy:\n  ask: [file.edit]\n"
KEPT = (
    "COLORTERM", "COLUMNS", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LINES", "NO_COLOR", "PATH", "PYTHONPATH",
    "TERM", "TMPDIR", "TZ",
)  # fmt: skip
"""What the demo keeps of the environment; anything else might lead to the user's settings, state or keys."""
COMMITS = (
    ("Fix the timeout of slow uploads", "src/upload.py", "SECONDS = 30  # TODO: a setting\n"),
    ("Add a dark theme", "src/theme.py", 'THEMES = ["light", "dark"]\n'),
    ("Fix a crash on empty files", "src/read.py", "def read(path):\n    return path.read_text() or None\n"),
    ("Let the search ignore accents", "src/search.py", "# TODO: and upper case\nACCENTS = False\n"),
    ("Fix dates before 1970", "src/dates.py", "EPOCH = None\n"),
    ("Write down the changes", "CHANGELOG.md", "# Changes\n\n## 1.3\n- Search in notes\n"),
)
"""The subject, the file and its text; a second of 2026 later each, so that every demo has the same commits."""
BEGAN = 1767225600
SECONDS_PER_LINE = 0.6
WIDTH = 80


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Show everything at once, without time to read.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what OneTool does, in a minute, without a key or a server; none of your files is read or changed.

    A program runs over three packs, in a repository made for it; you are asked before it changes a file; programs
    try to leave the sandbox; the tokens are counted. All of it is real, in a directory that is removed afterwards.

    Exit code 0: everything went as it should, also after a no; 1: it did not; 3: the program git is missing.
    """
    from ot.cli.terminal.event_loop import run_async
    from ot.cli.terminal.prompts import somebody_is_there

    if not shutil.which("git"):
        fail("the demo needs the program git: install it, and have it on the PATH", NOT_FOUND)
    stage = Stage(paced=not fast and not as_json and somebody_is_there(), silent=as_json)
    try:
        with make_place():
            found = run_async(_play(stage))
    except asyncio.CancelledError:  # SIGTERM or SIGHUP
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        echo_json(found)
    stage.say("", "The directory of the demo is removed. Next, your own servers:")
    stage.say("    onetool init --from claude-code", style="bold")
    raise typer.Exit(OK if found["as_expected"] else FAILURE)


@contextmanager
def make_place() -> Generator[None]:
    """Make a home with a repository in it; until the end, this process knows of no other home."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="onetool-demo-") as name:
        home = Path(name)
        for file, text in ((".ssh/id_ed25519", "a key of the demo\n"), (".onetool/onetool.yaml", SETTINGS)):
            (home / file).parent.mkdir(0o700)
            (home / file).write_text(text)
        os.environ.clear()
        os.environ.update({key: before[key] for key in KEPT if key in before})
        os.environ.update(HOME=name, OT_CWD=str(home / "shop"))
        try:
            _make_repository(home / "shop")
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _make_repository(directory: Path) -> None:
    stream = ""
    for second, (subject, file, text) in enumerate(COMMITS):
        stream += f"commit refs/heads/main\ncommitter Ada <ada@example.org> {BEGAN + second} +0000\n"
        stream += f"data {len(subject)}\n{subject}\nM 644 inline {file}\ndata {len(text)}\n{text}\n"
    for arguments, given in (
        (["init", "--quiet", "--template=", str(directory)], ""),
        (["-C", str(directory), "fast-import", "--quiet"], stream),
        (["-C", str(directory), "reset", "--quiet", "--hard", "main"], ""),
    ):
        environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
        ended = subprocess.run(["git", *arguments], input=given, capture_output=True, text=True, env=environment)
        if ended.returncode:
            fail(f"git cannot make the repository of the demo: {ended.stderr.strip()}")


class Stage:
    """Prints the steps: with time to read each, at once, or not at all."""

    def __init__(self, *, paced: bool, silent: bool) -> None:
        """Leave time to read if it is *paced*; print nothing if it is *silent*."""
        self._paced = paced
        self._screen = None if silent else Screen()
        self._unread = 0

    def say(self, *lines: str, style: str = "") -> None:
        """Print *lines*, each broken between words where it is too wide, and indented as it begins."""
        width = min(shutil.get_terminal_size().columns, WIDTH)
        for line in lines:
            margin = " " * (len(line) - len(line.lstrip()))
            parts = textwrap.wrap(line, width, subsequent_indent=margin, break_on_hyphens=False) or [""]
            self._unread += len(parts)
            if self._screen:
                self._screen.print(("\n".join(parts), style))

    def title(self, number: int, words: str) -> None:
        """Print the title of a step."""
        self.say("", f"{number} of 4  {words}", style="bold cyan")

    def program(self, code: str) -> None:
        """Print a program."""
        self._unread += code.count("\n") + 1
        if self._screen:
            self._screen.program(code)

    def reply(self, reply: Reply, lines: int | None = None) -> None:
        """Print a reply below its program, or its first *lines*."""
        shown = (f"      {line}" for line in reply.text.splitlines()[:lines])
        self.say(*shown, style="red" if reply.is_error else "green")

    async def pause(self) -> None:
        """Leave time to read what was printed since the last pause."""
        unread, self._unread = self._unread, 0
        if self._paced:
            await asyncio.sleep(unread * SECONDS_PER_LINE)


async def _play(stage: Stage) -> dict[str, Any]:
    from ot.cli.terminal.own_workspace import own_workspace

    task = asyncio.current_task()
    assert task
    for ending in ("SIGTERM", "SIGHUP"):
        with suppress(NotImplementedError, AttributeError):  # Windows
            asyncio.get_running_loop().add_signal_handler(getattr(signal, ending), task.cancel)
    async with own_workspace(terminal_level="ERROR") as app:
        stage.say("OneTool in a minute: no key, no server, none of your files.", style="bold")
        program = await _play_program(stage, app)
        attempts = await _play_attempts(stage, app)
        tokens = await _count_tokens(stage, app, program)
    refused = all(attempt["is_error"] for attempt in attempts)
    obeyed = program["is_error"] == (program["answer"] != "accept")
    return {"program": program, "attempts": attempts, "tokens": tokens, "as_expected": refused and obeyed}


async def _play_program(stage: Stage, app: Workspace) -> dict[str, Any]:
    from ot.runtime.run_events import CallEnded

    stage.title(1, "One program over three packs")
    stage.say("You: List the fixes in the changelog, and note the TODOs.")
    stage.say("A model would write this; it runs in a sandbox:", "")
    stage.program(PROGRAM)
    await stage.pause()
    stage.say("", "Its calls return to the program, not to a model:")
    found: dict[str, Any] = {"program": PROGRAM, "calls": [], "question": "", "answer": "none"}

    async def ask(question: Question) -> Answer:
        stage.title(2, "It asks first (policy.ask: [file.edit])")
        found["question"] = question.message
        answer = await _answer(stage, app, question)
        found["answer"] = answer.action
        return answer

    def show(event: RunEvent) -> None:
        if isinstance(event, CallEnded) and not event.error:
            found["calls"].append({"tool": event.tool, "characters": event.chars})
            if not found["question"]:
                stage.say(f"    {event.tool:<12} {event.chars:>6,} characters")

    reply = await app.run(PROGRAM, _caller(ask), tell=show)
    stage.say("", "This is all that a model would read:")
    stage.reply(reply)
    await stage.pause()
    return found | _as_data(reply)


def _caller(ask: AskUser | None = None) -> Caller:
    from ot.config.principal import os_user
    from ot.execution.caller import Caller
    from ot.stats.rows import CLI

    return Caller(os_user(), client=CLI, ask=ask)


async def _answer(stage: Stage, app: Workspace, question: Question) -> Answer:
    """Return the person's answer; without a terminal, show the question and answer no."""
    from ot.cli.terminal.prompts import TerminalQuestion, somebody_is_there
    from ot.execution.caller import Answer

    if somebody_is_there():
        return await TerminalQuestion(app.ask_seconds)(question)
    stage.say(*question.message.splitlines(), "Nobody sits at a terminal: the demo answers no.")
    return Answer("decline")


async def _play_attempts(stage: Stage, app: Workspace) -> list[dict[str, Any]]:
    stage.title(3, "Three programs try to leave the sandbox")
    found: list[dict[str, Any]] = []
    for attempt in ATTEMPTS:
        stage.program(attempt)
        reply = await app.run(attempt, _caller())
        stage.reply(reply, lines=1)
        found.append({"program": attempt} | _as_data(reply))
    await stage.pause()
    return found


def _as_data(reply: Reply) -> dict[str, Any]:
    return {"reply": reply.text, "is_error": reply.is_error, "engine": reply.engine}


async def _count_tokens(stage: Stage, app: Workspace, program: Mapping[str, Any]) -> dict[str, int]:
    """Count what goes through a model's context with the tools listed one by one, and behind OneTool."""
    from ot.cli.connecting.client_cost import CHARS_PER_TOKEN, own_chars
    from ot.stats.recorder import definition_chars

    tools = [tool for pack in PACKS for tool in app.picture.registry.pack(pack).tools.values()]
    listed = sum(map(definition_chars, tools)) // CHARS_PER_TOKEN
    returned = sum(call["characters"] for call in program["calls"]) // CHARS_PER_TOKEN
    run = await own_chars(app) // CHARS_PER_TOKEN
    written = (len(program["program"]) + len(program["reply"])) // CHARS_PER_TOKEN
    stage.title(4, "What that cost, in tokens (characters / 4)")
    rows = (
        ("tools", f"{len(tools)} tools of the three packs, one by one", listed, ""),
        ("returned", "what the calls returned", returned, ""),
        ("without_onetool", "without OneTool", listed + returned, "bold"),
        ("run", "OneTool's one tool, every pack behind it", run, ""),
        ("program_and_reply", "the program and its reply", written, ""),
        ("with_onetool", "with OneTool", run + written, "bold green"),
    )
    for _, words, tokens, style in rows:
        stage.say(f"    {words:<44}{tokens:>6,}", style=style)
    await stage.pause()
    return {name: tokens for name, _, tokens, _ in rows}
