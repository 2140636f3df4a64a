"""onetool run: a program's value on standard output, its failure on standard error, the exit code honest."""

from __future__ import annotations

import json
from pathlib import Path

from cli.command import OneTool


def test_a_program_s_value_is_printed(onetool: OneTool) -> None:
    ended = onetool("run", "{'a': 1 + 1}")
    assert (ended.code, ended.out, ended.err) == (0, '{"a":2}\n', "")


def test_prints_come_before_the_value(onetool: OneTool) -> None:
    assert onetool("run", "print('one')\n2").out == "one\n2\n"


def test_a_failure_goes_to_standard_error_and_ends_with_one(onetool: OneTool) -> None:
    ended = onetool("run", "x = 1\n1/0")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "ZeroDivisionError: division by zero\n  line 2: 1/0\n"


def test_a_program_is_read_from_a_file(onetool: OneTool) -> None:
    (onetool.cwd / "program.py").write_text("```python\nlen('é')\n```\n", encoding="utf-8")
    for option in ("-f", "--file"):
        ended = onetool("run", option, "program.py")
        assert (ended.code, ended.out) == (0, "1\n")


def test_a_program_is_read_from_standard_input(onetool: OneTool) -> None:
    ended = onetool("run", "-", stdin="x = 20\nx + 1\n")
    assert (ended.code, ended.out) == (0, "21\n")


def test_the_whole_reply_can_be_had_as_json(onetool: OneTool) -> None:
    good = json.loads(onetool("run", "--json", "print(1)\n[2]").out)
    assert (good["content"], good["is_error"]) == (["1\n", "[2]"], False)
    assert good["meta"]["engine"] in ("exact", "portable")  # whichever this machine can have
    ended = onetool("run", "1/0", "--json")
    bad = json.loads(ended.out)
    assert (ended.code, ended.err) == (1, "")
    assert (bad["is_error"], bad["meta"]["error"]) == (True, "ProgramFailed")


def test_there_must_be_exactly_one_program(onetool: OneTool) -> None:
    (onetool.cwd / "program.py").write_text("1")
    for arguments in (["run"], ["run", "1", "-f", "program.py"]):
        ended = onetool(*arguments)
        assert ended.code == 2
        assert "give the program, or --file FILE, or - for standard input" in ended.err


def test_a_file_that_cannot_be_read_is_named(onetool: OneTool) -> None:
    (onetool.cwd / "latin").write_bytes(b"\xff")
    for name, words in (("missing.py", "No such file"), (".", "directory"), ("latin", "utf-8")):
        ended = onetool("run", "-f", name)
        assert ended.code == 2
        assert f"cannot read {name}: " in ended.err
        assert words in ended.err
        assert "Traceback" not in ended.err


def test_a_configuration_with_an_error_is_told_with_file_and_line(onetool: OneTool) -> None:
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text("version: 1\n\nalaises: {}\n")
    ended = onetool("run", "1")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"onetool: {onetool.user / 'onetool.yaml'}:3: ")
    assert "aliases" in ended.err


def test_the_project_is_used_when_it_is_trusted(onetool: OneTool) -> None:
    onetool.project.mkdir()
    (onetool.project / "onetool.yaml").write_text("aliases: {v: ot.version}\n")
    ended = onetool("run", "v()")
    assert ended.code == 1
    assert "NameError" in ended.err
    assert "is not trusted and is not used" in ended.err
    assert onetool("run", "--trust-project", "v()").code == 0
    assert onetool("run", "v()").code == 1
    assert onetool("trust", "--yes").code == 0
    assert onetool("run", "v()").code == 0


def test_programs_work_in_the_directory_that_is_asked_for(onetool: OneTool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "note.txt").write_text("here\n")
    onetool.monkeypatch.setenv("OT_CWD", str(elsewhere))
    assert "here" in onetool("run", "file.read(path='note.txt')").out
    onetool.monkeypatch.setenv("OT_CWD", str(tmp_path / "nowhere"))
    ended = onetool("run", "1")
    assert ended.code == 1
    assert "OT_CWD does not name a directory" in ended.err


def test_a_process_keeps_value_and_failure_apart(onetool: OneTool) -> None:
    good, bad = onetool.process("run", "-", stdin="'é' * 2"), onetool.process("run", "nothing()")
    assert (good.code, good.out, good.err) == (0, "éé\n", "")
    assert (bad.code, bad.out) == (1, "")
    assert bad.err.startswith("NameError: name 'nothing' is not defined")
    assert "Traceback" not in bad.err


def test_a_module_of_the_working_directory_is_not_imported_even_where_the_path_names_it(onetool: OneTool) -> None:
    for name in ("yaml", "orjson", "pydantic_monty"):
        (onetool.cwd / f"{name}.py").write_text("open('ran', 'w').close()\nraise SystemExit('taken over')\n")
    for path in (".", str(onetool.cwd)):
        ended = onetool.process("run", "__format__ = 'yml'\n[1]", PYTHONPATH=path)
        assert (ended.code, ended.out) == (0, "[1]\n"), (path, ended)
    assert not (onetool.cwd / "ran").exists()
