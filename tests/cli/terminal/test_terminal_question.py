"""``onetool run`` asks the person at the terminal, and nobody where there is none."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.command import OneTool
from ot.cli.exit_codes import DENIED
from ot.cli.run import show_progress
from ot.runtime.run_events import Progress
from servers.desk import fake

PACK = '''
__ot_destructive__ = ["delete"]


def delete(item: int) -> int:
    """Delete something, and write that down."""
    with open({log!r}, "a") as file:
        file.write(f"{{item}}\\n")
    return item
'''
LOOP = "for i in range(50):\n    bin.delete(item=i)\n"
ONETOOL = str(Path(sys.executable).with_name("onetool"))
PROMPT = "[y]es, all 50 (or a number)"
UNCOUNTED = "i = 0\nwhile True:\n    bin.delete(item=i)\n    i += 1\n"
ON_A_PTY = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux terminals")


@dataclass
class Terminal:
    """A command with a person at its terminal; its standard output goes elsewhere."""

    process: subprocess.Popen[bytes]
    fd: int
    shown: str = ""

    def wait_for(self, words: str, seconds: float = 30.0) -> None:
        """Return when *words* are on the screen."""
        end = time.monotonic() + seconds
        while words not in self.shown:
            ready, _, _ = select.select([self.fd], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise TimeoutError(f"no {words!r} in {self.shown!r}")
            self.shown += os.read(self.fd, 4096).decode()

    def type(self, words: str) -> None:
        """Type a line."""
        os.write(self.fd, f"{words}\n".encode())

    def end(self) -> tuple[int, str]:
        """Return the exit code and the standard output."""
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, out.decode()


@pytest.fixture
def log(onetool: OneTool, tmp_path: Path) -> Path:
    """Where the tool of a user's own pack writes down what it deleted."""
    pack, log = onetool.user / "tools" / "bin", tmp_path / "deleted.txt"
    pack.mkdir(parents=True)
    (pack / "bin_tools.py").write_text(PACK.format(log=str(log)))
    return log


@contextmanager
def at_terminal(onetool: OneTool, *arguments: str, typed: str = "", command: str = ONETOOL) -> Generator[Terminal]:
    """Yield the command, started at a terminal at which *typed* was typed too early."""
    master, slave = pty.openpty()
    os.write(master, typed.encode())
    process = subprocess.Popen(
        [command, *arguments],
        stdin=slave, stdout=subprocess.PIPE, stderr=slave, cwd=onetool.cwd, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.communicate(timeout=10)
        os.close(master)


def deleted(log: Path) -> list[int]:
    """Return what was deleted."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


@ON_A_PTY
def test_a_loop_of_fifty_deletions_asks_once_for_all_of_them(onetool: OneTool, log: Path) -> None:
    with at_terminal(onetool, "run", LOOP, typed="y\n") as terminal:
        terminal.wait_for(PROMPT)
        assert deleted(log) == []  # what was typed before the question is no answer to it
        assert "bin.delete, marked as destructive: a program wants to call it." in terminal.shown
        assert "Arguments: item=0" in terminal.shown
        assert "Line 2: 'bin.delete(item=i)'" in terminal.shown
        assert "up to 50 times" in terminal.shown
        assert "[a]lways" in terminal.shown
        terminal.type("what?")
        terminal.wait_for("what?")
        terminal.type("y")
        assert terminal.end()[0] == 0
        assert terminal.shown.count("a program wants") == 1
    assert deleted(log) == list(range(50))


@ON_A_PTY
def test_a_loop_of_unknown_length_asks_again_after_ten(onetool: OneTool, log: Path) -> None:
    with at_terminal(onetool, "run", UNCOUNTED) as terminal:
        terminal.wait_for("[y]es up to 10 (or a number)")
        terminal.type("y")
        terminal.wait_for("10 calls of it have been made in this run.")
        terminal.wait_for("[n]o: ")
        terminal.type("n")
        assert terminal.end() == (DENIED, "")
    assert deleted(log) == list(range(10))


@ON_A_PTY
@pytest.mark.parametrize(("typed", "made"), [("n", 0), ("3", 3), ("\x04", 0)])
def test_the_answer_may_be_no_a_number_or_the_end_of_input(onetool: OneTool, log: Path, typed: str, made: int) -> None:
    with at_terminal(onetool, "run", LOOP) as terminal:
        terminal.wait_for(PROMPT)
        terminal.type(typed)
        terminal.wait_for("PermissionError: bin.delete was not called")
        assert terminal.end()[0] == DENIED
    assert deleted(log) == list(range(made))


@ON_A_PTY
def test_who_waits_for_a_server_that_starts_is_told_once(onetool: OneTool) -> None:
    onetool.user.mkdir(parents=True, exist_ok=True)
    (onetool.user / "onetool.yaml").write_text(json.dumps({"servers": {"notes": fake("delay=2.5")}}))
    with at_terminal(onetool, "run", "notes.echo(text='b')") as terminal:
        terminal.wait_for("starting notes ...")
        assert terminal.end() == (0, "b\n")


def test_the_installation_of_a_pack_is_one_line_and_a_tools_own_progress_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show = show_progress()
    for line in ("Resolved 7 packages", "Downloading numpy", "Installed 7 packages"):
        show(Progress(message=f"web: {line}", tool="web.fetch"))
    show(Progress(1, 2, "page 1\n of 2\n", "web.fetch"))
    assert capsys.readouterr().err.splitlines() == [
        "web: installing its packages, at the first call alone (details: onetool logs)",
        "page 1 of 2",
    ]


@ON_A_PTY
def test_nobody_waits_longer_than_the_user_has_said(onetool: OneTool, log: Path) -> None:
    (onetool.user / "onetool.yaml").write_text("policy: {ask_seconds: 0.5}\n")
    with at_terminal(onetool, "run", "bin.delete(item=1)") as terminal:
        terminal.wait_for("[y]es, this call · [a]lways · [n]o: ")
        terminal.wait_for("nobody answered within 0.5 s")
        assert terminal.end()[0] == DENIED
    assert deleted(log) == []


FORM = """
import asyncio
from ot.execution.caller import Question
from ot.cli.terminal.prompts import TerminalQuestion
fields = {
    "name": {"type": "string", "title": "Your\\x1b[1A name"},
    "age": {"type": "integer"},
    "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
    "sure": {"type": "boolean"},
    "note": {"type": "string"},
}
schema = {"type": "object", "properties": fields, "required": ["name", "sure"]}
question = Question("Who are\\x1b[2J [b]you[/b]?", schema)
print(asyncio.run(TerminalQuestion(20)(question)))
"""


@ON_A_PTY
def test_a_form_is_asked_field_by_field_until_it_is_filled_in(onetool: OneTool) -> None:
    with at_terminal(onetool, "-c", FORM, command=sys.executable) as terminal:
        terminal.wait_for("Who are\\x1b[2J [b]you[/b]?")  # what a terminal would obey is written out
        for prompt, typed in (
            ("Your\\x1b[1A name: ", ""),
            ("Your\\x1b[1A name: ", "Ann"),
            ("age: ", "many"),
            ("age: ", "42"),
            ("colour (red, blue) [blue]: ", "green"),
            ("colour (red, blue) [blue]: ", ""),
            ("sure: ", "perhaps"),
            ("sure: ", "yes"),
            ("note: ", ""),
            ("send this? [y]es · [n]o: ", "y"),
        ):
            terminal.wait_for(prompt)
            terminal.shown = terminal.shown.partition(prompt)[2]
            terminal.type(typed)
        code, out = terminal.end()
    assert code == 0
    assert "action='accept', content={'name': 'Ann', 'age': 42, 'colour': 'blue', 'sure': True}" in out


def test_without_a_terminal_the_line_that_would_allow_it_is_told(onetool: OneTool, log: Path) -> None:
    ended = onetool.process("run", "bin.delete(item=1)", stdin="y\ny\n")
    assert (ended.code, ended.out) == (DENIED, "")
    assert "standard input and standard error are not a terminal" in ended.err
    line = 'policy: {allow: ["bin.delete"]}'
    assert line in ended.err
    assert deleted(log) == []
    (onetool.user / "onetool.yaml").write_text(line + "\n")
    assert onetool.process("run", "bin.delete(item=1)").out == "1\n"
    assert deleted(log) == [1]


def test_check_shows_the_patterns(onetool: OneTool) -> None:
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text("policy: {ask: [bin.*], deny: [vault.*, x.y]}\n")
    out = onetool("check").out
    assert "  ask: bin.*\n" in out
    assert "  deny: vault.*, x.y\n" in out
    assert "policy.allow" not in out


ADDRESS = """
import asyncio
from ot.execution.caller import Question
from ot.cli.terminal.prompts import TerminalQuestion
question = Question("The server 'till' asks you to log in.", {}, "url", url="https://login.example/?state=1")
print(asyncio.run(TerminalQuestion(20)(question)))
"""


@ON_A_PTY
@pytest.mark.parametrize(("typed", "action"), [("y", "accept"), ("n", "decline")])
def test_an_address_is_shown_whole_and_nothing_is_opened_before_somebody_agrees(
    onetool: OneTool, typed: str, action: str
) -> None:
    with at_terminal(onetool, "-c", ADDRESS, command=sys.executable) as terminal:
        terminal.wait_for("asks you to log in.")
        terminal.wait_for("https://login.example/?state=1")
        terminal.wait_for("go on? [y]es · [n]o: ")
        terminal.type(typed)
        assert f"action='{action}'" in terminal.end()[1]
