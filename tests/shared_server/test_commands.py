"""Commands that the shared server answers: every byte as without it, and questions at the terminal they come from."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from typing import Any

import pytest

from daemon.shared_user import kill
from pace import PATIENCE, wait_while
from real_clients.published_clients import STARTED, WAITS
from shared_server.shared_house import SharedHouse, own_command

COMMANDS = (
    ("run", "print('a\\x1b[31m'); 'no newline'"),
    ("run", "1 / 0"),
    ("run", "--json", "ot.version()"),
    ("run", "bin.delete(item=1, log='x')"),
    ("list",),
    ("list", "--json"),
    ("list", "--tokens", "file"),
    ("list", "nosuch"),
    ("search", "read", "lines"),
    ("search", "zzqqxx"),
    ("show", "file.read"),
    ("show", "--json", "file.read"),
    ("show", "file.nosuch"),
)
ONE_RUN = re.compile(r'"(?:run|ms)": (?:"\w+"|[\d.]+)|^.* (?:WARNING|ERROR) ot\..*\n', re.MULTILINE)
"""What differs from run to run, and the log, which is the server's."""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_says_the_same_with_the_shared_server_and_without_it(
    busy_house: SharedHouse, words: tuple[str, ...]
) -> None:
    shared = busy_house.typed(*words, PYTHONPROFILEIMPORTTIME="1")
    alone = busy_house.typed(*words, ONETOOL_DAEMON="off")
    assert _is_quick(shared.stderr)
    said = "".join(line for line in shared.stderr.splitlines(keepends=True) if not line.startswith("import time:"))
    assert (shared.returncode, _settled(shared.stdout), _settled(said)) == (
        alone.returncode, _settled(alone.stdout), _settled(alone.stderr)
    )  # fmt: skip


def _is_quick(imports: str) -> bool:
    """Return whether the command left out what answering it takes."""
    return "ot.cli.sharing" in imports and "typer" not in imports and "ot.workspace" not in imports


def _settled(text: str) -> str:
    return ONE_RUN.sub("", text)


@pytest.mark.parametrize("words", [("run", "--file", "program.py"), ("list", "--help"), ("run",)], ids=" ".join)
def test_what_is_not_of_the_simplest_form_is_answered_by_the_command_itself(
    busy_house: SharedHouse, words: tuple[str, ...]
) -> None:
    (busy_house.cwd / "program.py").write_text("2 + 3")
    done = busy_house.typed(*words, PYTHONPROFILEIMPORTTIME="1")
    assert not _is_quick(done.stderr)
    assert (done.returncode, "5\n" in done.stdout) == {"run --file program.py": (0, True)}.get(
        " ".join(words), (0 if "--help" in words else 2, False)
    )


def test_no_command_starts_the_shared_server(house: SharedHouse) -> None:
    assert house.typed("run", "1 + 1").stdout == "2\n"
    assert house.typed("list").returncode == 0
    assert house.servers() == []


def test_a_question_of_a_run_is_asked_at_the_terminal_where_it_was_typed(busy_house: SharedHouse) -> None:
    log = busy_house.cwd / "asked.txt"
    mine, its = pty.openpty()
    process = subprocess.Popen(
        own_command("run", f"bin.delete(item=7, log='{log}')"),
        stdin=its, stderr=its, stdout=subprocess.PIPE, cwd=busy_house.cwd, env=busy_house.environment(),
    )  # fmt: skip
    try:
        os.close(its)
        shown = _read_until(mine, b"[n]o: ")
        assert b"bin.delete, marked as destructive: a program wants to call it." in shown
        os.write(mine, b"y\n")
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(mine)
    assert (process.returncode, out, log.read_text()) == (0, b"7\n", "7\n")


def _read_until(terminal: int, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        shown += os.read(terminal, 4096)
    return shown


def test_a_run_ends_with_the_command_that_asked_for_it(busy_house: SharedHouse) -> None:
    started = busy_house.cwd / STARTED
    with subprocess.Popen(own_command("run", WAITS), cwd=started.parent, env=busy_house.environment()) as process:
        wait_while(lambda: not started.exists())
        assert [one["runs"] for one in _commands(busy_house)] == [1]
        kill(process.pid)
    wait_while(lambda: _commands(busy_house))


def test_a_command_whose_server_is_killed_says_that_its_effect_is_not_known(house: SharedHouse) -> None:
    started = house.cwd / STARTED
    with house.client():
        command = subprocess.Popen(
            own_command("run", WAITS), cwd=started.parent, env=house.environment(), stderr=subprocess.PIPE, text=True
        )
        wait_while(lambda: not started.exists())
        kill(house.daemon())
        _, said = command.communicate(timeout=PATIENCE)
    assert command.returncode == 5
    assert "the shared server ended before it had answered, and the effect of the command is not known" in said


def test_a_server_that_is_to_end_waits_for_commands(house: SharedHouse) -> None:
    cwd = house.cwd
    program = 'import os, time\nopen("begun", "w").close()\nwhile not os.path.exists("go"): time.sleep(0.01)\n"done"'
    with house.client():
        command = subprocess.Popen(
            own_command("run", program), cwd=cwd, env=house.environment(), stdout=subprocess.PIPE, text=True
        )
        wait_while(lambda: not (cwd / "begun").exists())
        with subprocess.Popen(own_command("stop"), cwd=cwd, env=house.environment()) as ending:
            wait_while(lambda: list(house.runtime.rglob("*.sock")))
            (cwd / "go").touch()
            assert command.communicate(timeout=PATIENCE)[0] == "done\n"
        assert (command.returncode, ending.returncode) == (0, 0)


def _commands(house: SharedHouse) -> list[dict[str, Any]]:
    (server,) = json.loads(house.typed("ps", "--json").stdout)["servers"]
    return [one for one in server["connections"] if one["client"] == "onetool run"]
