"""onetool run --record and --replay, and onetool test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import OneTool

PROGRAM = "text = file.read(path='a.txt')\nprint(len(text))\ntext.upper()\n"


@pytest.fixture
def place(onetool: OneTool) -> Path:
    """A directory with a program and its cassette, without the file that the program reads."""
    (onetool.cwd / "a.txt").write_text("words")
    (onetool.cwd / "p.py").write_text(PROGRAM)
    ended = onetool("run", "-f", "p.py", "--record", "p.cassette.yaml")
    assert (ended.code, ended.out, ended.err) == (0, "5\nWORDS\n", "")
    (onetool.cwd / "a.txt").unlink()
    return onetool.cwd


def put(place: Path, directory: Path) -> None:
    """Put the program and its cassette into the *directory* of programs."""
    directory.mkdir(parents=True, mode=0o700)
    for name in ("p.py", "p.cassette.yaml"):
        (directory / name).write_text((place / name).read_text())


def test_a_recorded_program_is_replayed(onetool: OneTool, place: Path) -> None:
    ended = onetool("run", "-f", "p.py", "--replay", "p.cassette.yaml")
    assert (ended.code, ended.out, ended.err) == (0, "5\nWORDS\n", "")
    assert json.loads(onetool("run", "-f", "p.py", "--replay", "p.cassette.yaml", "--json").out)["is_error"] is False


def test_calls_that_are_left_over_are_told(onetool: OneTool, place: Path) -> None:
    ended = onetool("run", "1", "--replay", "p.cassette.yaml")
    assert (ended.code, ended.out) == (1, "1\n")
    assert ended.err == "onetool: not called, though it was recorded: file.read(path='a.txt')\n"


def test_a_run_that_cannot_be_recorded_says_so(onetool: OneTool) -> None:
    ended = onetool("run", "file.reed()", "--record", "x.yaml")
    assert (ended.code, (onetool.cwd / "x.yaml").exists()) == (3, False)
    assert "onetool: the run is not recorded: it did not come to its end" in ended.err
    ended = onetool("run", "1", "--record", "/dev/null/x.yaml")
    assert (ended.code, ended.out) == (1, "1\n")
    assert "Traceback" not in ended.err


def test_a_cassette_that_is_none_is_refused_with_its_line(onetool: OneTool) -> None:
    (onetool.cwd / "x.yaml").write_text("cassette: 1\nclock: soon\nseed: 1\n")
    ended = onetool("run", "1", "--replay", "x.yaml")
    assert (ended.code, ended.out) == (1, "")
    assert "x.yaml:2: not a cassette: clock: " in ended.err
    ended = onetool("run", "1", "--replay", "missing.yaml")
    assert ended.code == 2
    assert "cannot read missing.yaml: No such file" in ended.err


def test_recording_and_replaying_at_once_is_refused(onetool: OneTool) -> None:
    assert onetool("run", "1", "--record", "x", "--replay", "y").code == 2


def test_programs_of_the_user_are_tested(onetool: OneTool, place: Path) -> None:
    put(place, onetool.user / "programs")
    (onetool.user / "programs" / "alone.py").write_text("1")
    file = onetool.user / "programs" / "p.py"
    assert onetool("test").out == f"ok      p  {file}\n"
    assert json.loads(onetool("test", "p", "--json").out) == [{"name": "p", "file": str(file), "differences": []}]
    ended = onetool("test", "alone")
    assert (ended.code, ended.err) == (3, "onetool: there is no program 'alone' with a cassette beside it\n")


def test_a_program_that_does_something_else_fails(onetool: OneTool, place: Path) -> None:
    put(place, onetool.user / "programs")
    file = onetool.user / "programs" / "p.py"
    file.write_text(PROGRAM.replace("upper", "title"))
    ended = onetool("test")
    assert (ended.code, ended.out) == (1, f"failed  p  {file}\n")
    assert "\np:\n  value: recorded 'WORDS', now 'Words'\n" in ended.err
    assert ended.err.endswith("onetool: 1 program of 1 did not do what was recorded\n")
    file.write_text(PROGRAM.replace("a.txt", "b.txt"))
    said = "file.read(path='b.txt') is not in the cassette; the nearest recorded call is file.read(path='a.txt')"
    assert said in onetool("test").err


def test_programs_of_a_project_are_tested_once_it_is_trusted(onetool: OneTool, place: Path) -> None:
    put(place, onetool.project / "programs")
    ended = onetool("test")
    assert (ended.code, "no program has a cassette beside it" in ended.err) == (3, True)
    ended = onetool("test", "--trust-project")
    assert (ended.code, ended.out) == (0, f"ok      p  {onetool.project / 'programs' / 'p.py'}\n")
