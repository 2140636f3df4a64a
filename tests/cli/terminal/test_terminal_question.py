"""``onetool run`` asks the person at the terminal, and nobody where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cli.command import OneTool
from ot.cli.exit_codes import DENIED
from ot.cli.run import show_progress
from ot.cli.terminal.prompts import fit
from ot.runtime.run_events import Progress
from proxied.desk import fake
from terminal import ONETOOL, Terminal
from terminal import at_terminal as open_terminal

PACK = '''
__ot_destructive__ = ["delete"]


def delete(item: int) -> int:
    """Delete something, and write that down."""
    with open({log!r}, "a") as file:
        file.write(f"{{item}}\\n")
    return item
'''
LOOP = "for i in range(50):\n    bin.delete(item=i)\n"
PROMPT = "[y]es, all 50 (or a number)"
UNCOUNTED = "i = 0\nwhile True:\n    bin.delete(item=i)\n    i += 1\n"
ON_A_PTY = pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux terminals")


@pytest.fixture
def log(onetool: OneTool, tmp_path: Path) -> Path:
    """Where the tool of a user's own pack writes down what it deleted."""
    pack, log = onetool.user / "tools" / "bin", tmp_path / "deleted.txt"
    pack.mkdir(parents=True)
    (pack / "bin_tools.py").write_text(PACK.format(log=str(log)))
    return log


def at_terminal(
    onetool: OneTool, *arguments: str, typed: str = "", command: str = ONETOOL
) -> AbstractContextManager[Terminal]:
    """Start the command at a terminal; its standard output goes elsewhere."""
    return open_terminal([command, *arguments], os.environ, onetool.cwd, typed=typed, stdout=subprocess.PIPE)


def deleted(log: Path) -> list[int]:
    """Return what was deleted."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


@ON_A_PTY
def test_a_loop_of_fifty_deletions_asks_once_for_all_of_them(onetool: OneTool, log: Path) -> None:
    with at_terminal(onetool, "run", LOOP, typed="y\n") as terminal:
        terminal.read_until(PROMPT)
        assert deleted(log) == []  # what was typed before the question is no answer to it
        assert "bin.delete, marked as destructive: a program wants to call it." in terminal.shown
        assert "Arguments: item=0" in terminal.shown
        assert "Line 2: 'bin.delete(item=i)'" in terminal.shown
        assert "up to 50 times" in terminal.shown
        assert "[a]lways" in terminal.shown
        terminal.type("what?")
        terminal.read_until("what?")
        terminal.type("y")
        assert terminal.end()[0] == 0
        assert terminal.shown.count("a program wants") == 1
    assert deleted(log) == list(range(50))


@ON_A_PTY
def test_a_loop_of_unknown_length_asks_again_after_ten(onetool: OneTool, log: Path) -> None:
    with at_terminal(onetool, "run", UNCOUNTED) as terminal:
        terminal.read_until("[y]es up to 10 (or a number)")
        terminal.type("y")
        terminal.read_until("10 calls of it have been made in this run.")
        terminal.read_until("[n]o: ")
        terminal.type("n")
        assert (terminal.end()[0], terminal.output) == (DENIED, "")
    assert deleted(log) == list(range(10))


@ON_A_PTY
@pytest.mark.parametrize(("typed", "made"), [("n", 0), ("3", 3), ("\x04", 0)])
def test_the_answer_may_be_no_a_number_or_the_end_of_input(onetool: OneTool, log: Path, typed: str, made: int) -> None:
    with at_terminal(onetool, "run", LOOP) as terminal:
        terminal.read_until(PROMPT)
        terminal.type(typed)
        terminal.read_until("PermissionError: bin.delete was not called")
        assert terminal.end()[0] == DENIED
    assert deleted(log) == list(range(made))


@ON_A_PTY
def test_who_waits_for_a_server_that_starts_is_told_once(onetool: OneTool) -> None:
    onetool.user.mkdir(parents=True, exist_ok=True)
    (onetool.user / "onetool.yaml").write_text(json.dumps({"servers": {"notes": fake("delay=2.5")}}))
    with at_terminal(onetool, "run", "notes.echo(text='b')") as terminal:
        terminal.read_until("starting notes ...")
        assert (terminal.end()[0], terminal.output) == (0, "b\n")


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
        terminal.read_until("[y]es, this call · [a]lways · [n]o: ")
        terminal.read_until("nobody answered within 0.5 s")
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
        terminal.read_until("Who are\\x1b[2J [b]you[/b]?")  # what a terminal would obey is written out
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
            terminal.read_until(prompt)
            terminal.shown = terminal.shown.partition(prompt)[2]
            terminal.type(typed)
        code, out = terminal.end()[0], terminal.output
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


def test_a_question_fits_a_narrow_terminal_and_what_continues_a_line_is_further_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((40, 24)))
    said = "bin.delete: a program wants to call it again.\n  path: 'a.txt and A yes allows this call\x1b[2J, no'\n\nend"
    assert fit(said).split("\n") == [
        "bin.delete: a program wants to call it",
        "    again.",
        "  path: 'a.txt and A yes allows this",
        "      call\\x1b[2J, no'",
        "",
        "end",
    ]
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert fit(said).split("\n")[0] == "bin.delete: a program wants to call it again."


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
        terminal.read_until("asks you to log in.")
        terminal.read_until("https://login.example/?state=1")
        terminal.read_until("go on? [y]es · [n]o: ")
        terminal.type(typed)
        assert terminal.end()[0] == 0
        assert f"action='{action}'" in terminal.output
