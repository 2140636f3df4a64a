"""onetool run, runs and the options of serve: standard output is the reply, and the exit code honest."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cli.command import OneTool
from ot.background.questions import question_fields
from ot.cli import runs
from ot.cli.terminal import echo
from ot.config.principal import os_user
from ot.execution.call_context import CallForecast
from ot.execution.consent import consent_question
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.ledger_file import LEDGER, LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool


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
    assert "OT_CWD is not a directory" in ended.err


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


def test_the_log_on_standard_error_is_json_when_that_is_asked_for(onetool: OneTool) -> None:
    ended = onetool.process("serve", "--json", stdin="")
    assert (ended.code, ended.out) == (0, "")
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert "serving MCP on standard input and output" in [line["message"] for line in lines]


RUN = "1f0c2b7a9d3e4f56"
WRITE = "file.write(path='a.txt', content='x')"


def in_ledger[T](onetool: OneTool, work: Callable[[SqliteLedger], Awaitable[T]]) -> T:
    """Return what *work* returns, done by a server that has ended since."""

    async def done() -> T:
        ledger = SqliteLedger(LedgerFile(onetool.user / LEDGER))
        try:
            return await work(ledger)
        finally:
            await ledger.aclose()

    return asyncio.run(done())


async def begun(ledger: SqliteLedger) -> int:
    run = BackgroundRun(RUN, os_user(), "file.delete(path='a')", time.time(), "nightly", directory="/srv/shop")
    await ledger.add(run, 10)
    start = await ledger.begin(RUN)
    assert start is not None
    return start.number


async def asks(ledger: SqliteLedger) -> None:
    tool = Tool("file", "delete", destructive=True)
    question = consent_question(tool, {"path": "a"}, CallForecast(most=None), calls=10, always=True, redact=str)
    await ledger.ask(RUN, await begun(ledger), question_fields(question, 1001))


def test_what_a_run_in_the_foreground_did_is_shown(onetool: OneTool) -> None:
    run = json.loads(onetool("run", f"{WRITE}\n1 / 0", "--json").out)["meta"]["run"]
    shown = onetool("runs", "show", run)
    assert 0 == shown.code
    assert shown.out.splitlines()[0] == f"Run {run}, in the foreground, in {str(onetool.cwd.resolve())!r}"
    assert shown.out.splitlines()[1].split()[:4] == ["done", "file.write", "line", "1"]
    found = json.loads(onetool("runs", "show", run, "--json").out)
    assert (run, f"{run}-1") == (found["id"], found["effects"][0]["key"])
    assert 0 == onetool("runs", "follow", run).code


def test_runs_that_nobody_knows_are_told_as_that(onetool: OneTool) -> None:
    listed = onetool("runs", "list")
    assert (0, "") == (listed.code, listed.out)
    assert "No runs in the background" in listed.err
    assert {"runs": [], "unknown": []} == json.loads(onetool("runs", "list", "--json").out)
    assert not (onetool.user / LEDGER).exists()
    for command in ("show", "follow", "cancel"):
        ended = onetool("runs", command, "nobody")
        assert (3, "") == (ended.code, ended.out)
        assert "'nobody'" in ended.err


def test_a_run_that_was_left_behind_is_shown_as_that_and_can_be_cancelled(onetool: OneTool) -> None:
    in_ledger(onetool, begun)
    (row,) = json.loads(onetool("runs", "list", "--json").out)["runs"]
    assert (RUN, "nightly", "running", 1, True) == tuple(
        row[k] for k in ("id", "name", "state", "starts", "left_behind")
    )
    assert f"{RUN}  running" in onetool("runs", "list").out
    shown = onetool("runs", "show", RUN).out
    assert f"Run {RUN}: running, started 1 time, asked for at 20" in shown
    assert shown.splitlines()[0].endswith(", in '/srv/shop', named 'nightly'")
    assert "nobody carries it out: its server has ended" in shown
    followed = onetool("runs", "follow", RUN)
    assert (5, True) == (followed.code, "nobody carries it out" in followed.err)
    cancelled = onetool("runs", "cancel", RUN)
    assert (0, True) == (cancelled.code, f"Run {RUN} is asked to stop. But nobody" in cancelled.out)
    assert json.loads(onetool("runs", "cancel", RUN, "--json").out)["cancelled"]


def test_a_run_that_waits_has_ended_when_it_is_cancelled(onetool: OneTool) -> None:
    in_ledger(onetool, lambda ledger: ledger.add(BackgroundRun(RUN, os_user(), "1", time.time()), 10))
    assert f"Run {RUN} has ended: cancelled." in onetool("runs", "cancel", RUN).out
    assert 1 == onetool("runs", "follow", RUN).code


@pytest.mark.parametrize(("state", "code"), [("done", 0), ("stopped", 1)])
def test_a_run_is_followed_to_its_end_while_a_server_carries_it_out(onetool: OneTool, state: Any, code: int) -> None:
    ledger = SqliteLedger(LedgerFile(onetool.user / LEDGER))

    async def carry_out() -> None:
        number = await begun(ledger)
        started.set()
        while not followed.is_set():
            await ledger.beat(RUN, number)
            await asyncio.sleep(0.01)
        await ledger.end(RUN, number, RunEnd(state, time.time(), ("all that was to be done",)))

    started, followed = threading.Event(), threading.Event()
    server = threading.Thread(target=lambda: asyncio.run(carry_out()))
    server.start()
    assert started.wait(20)
    with onetool.monkeypatch.context() as patch:
        patch.setattr(runs, "echo", lambda line: (echo(line), followed.set()))
        ended = onetool("runs", "follow", RUN)
    server.join()
    ledger.close()
    assert code == ended.code
    first, *_, last = ended.out.splitlines()
    assert (True, "  | all that was to be done") == (": running" in first, last)


def test_a_question_is_shown_with_how_it_is_answered(onetool: OneTool) -> None:
    in_ledger(onetool, asks)
    shown = onetool("runs", "show", RUN).out
    assert "file.delete, marked as destructive: a program wants to call it." in shown
    assert f"Answer it with: onetool answer {RUN}" in shown


FORGED = "x\n1f0c2b7a9d3e4f57  done\x1b[2J\u202egnp\u200b\u2028y\r" + "z" * 500
"""A name as a program may choose it: rows, orders to a terminal, and letters that turn or hide others."""


def test_what_a_program_says_is_on_one_line_in_quotes_or_marked(onetool: OneTool) -> None:
    async def ended(ledger: SqliteLedger) -> None:
        run = BackgroundRun(RUN, os_user(), "1", time.time(), FORGED, directory="/srv/a\nb")
        await ledger.add(run, 10)
        await ledger.begin(RUN)
        await ledger.end(RUN, 1, RunEnd("done", time.time(), ("fine\nIt called nothing that may change something.",)))

    in_ledger(onetool, ended)
    listed = onetool("runs", "list").out.splitlines()
    assert (2, True) == (len(listed), listed[1].startswith(f"{RUN}  done "))
    shown = onetool("runs", "show", RUN).out
    (reply,) = [place for place, line in enumerate(shown.splitlines()) if line == "Its reply:"]
    first, *ours, _ = shown.splitlines()[: reply + 1]
    assert first.startswith(f"Run {RUN}: done, started 1 time")
    assert ["It called nothing that may change something."] == ours
    assert ["  | fine", "  | It called nothing that may change something."] == shown.splitlines()[reply + 1 :]
    for line in (*listed, first):
        assert line.isprintable()
        assert len(line) < 700
    assert r"in '/srv/a\nb', named 'x\n1f0c2b7a9d3e4f57  done\x1b[2J\u202egnp\u200b\u2028y\rzzz" in first


def test_calls_of_unknown_effect_are_listed(onetool: OneTool) -> None:
    config = "policy: {allow: ['slow.*']}\nlimits: {call_seconds: 0.3}\n"
    pack = onetool.user / "tools" / "slow" / "slow_tools.py"
    pack.parent.mkdir(parents=True)
    pack.write_text('import time\n\n\ndef pay() -> None:\n    """Pay, slowly."""\n    time.sleep(600)\n')
    (onetool.user / "onetool.yaml").write_text(config)
    run = json.loads(onetool("run", "slow.pay()", "--json").out)["meta"]["run"]
    assert f"The effect of 1 call of run {run} is unknown: onetool runs show {run}" in onetool("runs", "list").err
    (row,) = json.loads(onetool("runs", "list", "--json").out)["unknown"]
    assert ("slow.pay", "unknown") == (row["tool"], row["state"])
