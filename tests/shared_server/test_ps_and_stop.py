"""Commands about the shared server and those that it answers; users who want none."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pace import PATIENCE, patiently, wait_while
from real_clients.published_clients import STARTED, WAITS
from shared_bed import SharedBed, kill, own_command, wait_until_gone


def test_without_a_shared_server_there_is_nothing_to_show_or_end(house: SharedBed) -> None:
    for command in ("ps", "stop"):
        done = house.typed(command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No shared server is running.\n")
        assert json.loads(house.typed(command, "--json").stdout) == {"servers": []}


def test_each_client_is_shown_with_its_name_and_directory(house: SharedBed) -> None:
    other = house.directory_beside("other")
    with house.client(), house.client(cwd=other):
        (server,) = house.servers()
        assert Path(f"/proc/{server['pid']}/exe").exists()
        assert 0 <= time.time() - server["since"] < 600
        seen = [(one["client"], one["cwd"], one["runs"]) for one in server["connections"]]
        assert sorted(seen) == sorted([("wire", str(house.cwd), 0), ("wire", str(other), 0)])
        lines = house.typed("ps").stdout.splitlines()
        assert f"process {server['pid']}" in lines[0]
        assert lines[0].endswith("2 clients")
        assert [line.split()[0] for line in lines[1:]] == ["wire", "wire"]


def test_the_directory_is_written_as_its_user_writes_it(house: SharedBed) -> None:
    inside = house.home / "shop"
    inside.mkdir()
    with house.client(cwd=inside):
        assert house.typed("ps").stdout.splitlines()[1].endswith("  ~/shop")


def test_stop_ends_the_process_and_clients_go_on(house: SharedBed) -> None:
    with house.client() as client:
        before = house.daemon()
        done = house.typed("stop")
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"Ended the shared server, process {before}, with 1 client.\n"
        wait_until_gone(before)
        assert house.servers() == []
        assert client.run("1 + 1").text == "2"
        assert house.daemon() != before


def test_stop_waits_for_open_runs_and_now_does_not(house: SharedBed) -> None:
    go = house.cwd / "go.txt"
    waits = f'import os, time\nwhile not os.path.exists("{go}"): time.sleep(0.01)\n"done"'
    with house.client() as client:
        begun = client.send_run(waits)
        _wait_for_run(house)
        with subprocess.Popen(own_command("stop"), cwd=go.parent, env=house.environment()) as ending:
            wait_while(lambda: list(house.runtime.rglob("*.sock")))
            go.touch()
            assert client.wait(begun).text == "done"
        assert ending.returncode == 0
        go.unlink()
        cut = client.send_run(waits)
        _wait_for_run(house)
        assert house.typed("stop", "--now").returncode == 0
        reply = client.wait(cut)
        assert reply.is_error and "asked to end at once, and the run was not over. It was stopped" in reply.text
        assert client.run("1 + 1").text == "2"


def _wait_for_run(house: SharedBed) -> None:
    wait_while(lambda: not any(one["runs"] for server in house.servers() for one in server.get("connections", ())))


def test_a_socket_that_a_killed_server_left_is_not_shown(house: SharedBed) -> None:
    with house.client():
        pid = house.daemon()
        kill(pid)
        wait_until_gone(pid)
        assert list(house.runtime.rglob("*.sock"))
        assert house.servers() == []
        assert house.typed("stop").returncode == 0


def test_a_server_that_hangs_is_said_to_be_silent_and_doctor_says_how_to_end_it(house: SharedBed) -> None:
    with house.client():
        pid = house.daemon()
        os.kill(pid, signal.SIGSTOP)
        try:
            (server,) = house.servers()
            assert server["silent"]
            stopped = house.typed("stop")
            assert stopped.returncode == 1
            assert "was not ended" in stopped.stderr
            found = json.loads(house.typed("doctor", "--json").stdout)["findings"]
            (silent,) = [one for one in found if one["area"] == "shared server"]
            assert (silent["state"], silent["advice"]) == ("problem", f"end process {pid}: kill -9 {pid}")
        finally:
            kill(pid)


def test_doctor_says_who_is_served_and_why_nobody_is(house: SharedBed) -> None:
    def said(**more: str) -> dict[str, str]:
        found = json.loads(house.typed("doctor", "--json", **more).stdout)["findings"]
        return next(one for one in found if one["area"] == "shared server")

    assert "none is running" in said()["text"]
    assert said(ONETOOL_DAEMON="off")["text"] == "each client is served alone: ONETOOL_DAEMON is off"
    with house.client():
        assert said()["text"] == f"process {house.daemon()} serves 1 client"


def test_the_log_of_the_shared_server_is_found_from_a_project_that_has_its_own(house: SharedBed) -> None:
    project = house.cwd / ".onetool"
    project.mkdir()
    (project / "onetool.yaml").write_text("logs: {level: INFO}\n")
    house.config.write_text("logs: {level: INFO}\n")
    assert house.typed("trust", "--yes").returncode == 0
    secrets = house.config.with_name("secrets.yaml")
    secrets.write_text("TOKEN: hunter22-of-the-house\n")
    secrets.chmod(0o600)
    with house.client() as client:
        client.run("file.write(path='a.txt', content='hunter22-of-the-house')")
    logged = house.typed("logs", "--shared").stdout
    assert "[secret:TOKEN]" in logged and "hunter22" not in logged
    assert "sharing one server" not in house.typed("logs").stdout
    assert "sharing one server" in house.typed("logs", "--shared").stdout


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
    busy_house: SharedBed, words: tuple[str, ...]
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
    busy_house: SharedBed, words: tuple[str, ...]
) -> None:
    (busy_house.cwd / "program.py").write_text("2 + 3")
    done = busy_house.typed(*words, PYTHONPROFILEIMPORTTIME="1")
    assert not _is_quick(done.stderr)
    assert (done.returncode, "5\n" in done.stdout) == {"run --file program.py": (0, True)}.get(
        " ".join(words), (0 if "--help" in words else 2, False)
    )


def test_no_command_starts_the_shared_server(house: SharedBed) -> None:
    assert house.typed("run", "1 + 1").stdout == "2\n"
    assert house.typed("list").returncode == 0
    assert house.servers() == []


def test_a_question_of_a_run_is_asked_at_the_terminal_where_it_was_typed(busy_house: SharedBed) -> None:
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


def test_a_run_ends_with_the_command_that_asked_for_it(busy_house: SharedBed) -> None:
    started = busy_house.cwd / STARTED
    with subprocess.Popen(own_command("run", WAITS), cwd=started.parent, env=busy_house.environment()) as process:
        wait_while(lambda: not started.exists())
        assert [one["runs"] for one in _commands(busy_house)] == [1]
        kill(process.pid)
    wait_while(lambda: _commands(busy_house))


def test_a_command_whose_server_is_killed_says_that_its_effect_is_not_known(house: SharedBed) -> None:
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


def test_a_server_that_is_to_end_waits_for_commands(house: SharedBed) -> None:
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


def _commands(house: SharedBed) -> list[dict[str, Any]]:
    for _ in patiently():
        (server,) = house.servers()
        if "connections" in server:  # or it is silent, as one that a busy machine keeps waiting may be
            return [one for one in server["connections"] if one["client"] == "onetool run"]
    raise AssertionError("it is silent")


def check_alone(house: SharedBed, why: str, switch: str = "on") -> None:
    with house.client(ONETOOL_DAEMON=switch) as client:
        assert client.run("1 + 1").text == "2"
        assert house.servers() == []
        client.wait_for_stderr(f"served alone: {why}")


def test_the_variable_onetool_daemon_off_serves_alone(house: SharedBed) -> None:
    check_alone(house, "ONETOOL_DAEMON is off", "off")


@pytest.mark.parametrize("setting", ["daemon: off\n", "daemon:   off  # why\nlogs: {level: WARNING}\n"])
def test_daemon_off_in_the_settings_serves_alone(house: SharedBed, setting: str) -> None:
    house.config.write_text(setting)
    check_alone(house, "the setting daemon is off")
    assert not list(house.runtime.rglob("*.sock"))


def test_the_setting_wins_in_every_form_that_a_file_may_have(house: SharedBed) -> None:
    house.config.write_text('{"daemon": "off"}')
    check_alone(house, "the shared server refuses: the setting daemon is off")


def test_a_project_cannot_switch_it(house: SharedBed) -> None:
    project = house.cwd / ".onetool"
    project.mkdir()
    (project / "onetool.yaml").write_text("daemon: off\n")
    done = house.typed("check", "--json")
    assert "trust" in done.stdout + done.stderr
    trusted = house.typed("trust", "--yes")
    assert trusted.returncode != 0
    assert "daemon" in trusted.stderr


def test_a_plain_server_is_never_shared(house: SharedBed) -> None:
    with house.client(shared=False) as client:
        assert client.run("1 + 1").text == "2"
        assert house.servers() == []
