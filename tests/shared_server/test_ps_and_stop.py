"""onetool ps and stop: who uses the shared server, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from daemon.shared_user import kill, wait_until_gone
from pace import wait_while
from shared_server.shared_house import SharedHouse, own_command


def test_without_a_shared_server_there_is_nothing_to_show_or_end(house: SharedHouse) -> None:
    for command in ("ps", "stop"):
        done = house.typed(command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No shared server is running.\n")
        assert json.loads(house.typed(command, "--json").stdout) == {"servers": []}


def test_each_client_is_shown_with_its_name_and_directory(house: SharedHouse) -> None:
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


def test_the_directory_is_written_as_its_user_writes_it(house: SharedHouse) -> None:
    inside = house.home / "shop"
    inside.mkdir()
    with house.client(cwd=inside):
        assert house.typed("ps").stdout.splitlines()[1].endswith("  ~/shop")


def test_stop_ends_the_process_and_clients_go_on(house: SharedHouse) -> None:
    with house.client() as client:
        before = house.daemon()
        done = house.typed("stop")
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"Ended the shared server, process {before}, with 1 client.\n"
        wait_until_gone(before)
        assert house.servers() == []
        assert client.run("1 + 1").text == "2"
        assert house.daemon() != before


def test_stop_waits_for_open_runs_and_now_does_not(house: SharedHouse) -> None:
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


def _wait_for_run(house: SharedHouse) -> None:
    wait_while(lambda: not any(one["runs"] for server in house.servers() for one in server.get("connections", ())))


def test_a_socket_that_a_killed_server_left_is_not_shown(house: SharedHouse) -> None:
    with house.client():
        pid = house.daemon()
        kill(pid)
        wait_until_gone(pid)
        assert list(house.runtime.rglob("*.sock"))
        assert house.servers() == []
        assert house.typed("stop").returncode == 0


def test_a_server_that_hangs_is_said_to_be_silent_and_doctor_says_how_to_end_it(house: SharedHouse) -> None:
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


def test_doctor_says_who_is_served_and_why_nobody_is(house: SharedHouse) -> None:
    def said(**more: str) -> dict[str, str]:
        found = json.loads(house.typed("doctor", "--json", **more).stdout)["findings"]
        return next(one for one in found if one["area"] == "shared server")

    assert "none is running" in said()["text"]
    assert said(ONETOOL_DAEMON="off")["text"] == "each client is served alone: ONETOOL_DAEMON is off"
    with house.client():
        assert said()["text"] == f"process {house.daemon()} serves 1 client"


def test_the_log_of_the_shared_server_is_found_from_a_project_that_has_its_own(house: SharedHouse) -> None:
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
