"""A user who wants no shared server has none, whatever a client's entry says."""

from __future__ import annotations

import pytest

from shared_server.shared_house import SharedHouse


def check_alone(house: SharedHouse, why: str, switch: str = "on") -> None:
    with house.client(ONETOOL_DAEMON=switch) as client:
        assert client.run("1 + 1").text == "2"
        assert house.servers() == []
        client.wait_for_stderr(f"served alone: {why}")


def test_the_variable_wins(house: SharedHouse) -> None:
    check_alone(house, "ONETOOL_DAEMON is off", "off")


@pytest.mark.parametrize("setting", ["daemon: off\n", "daemon:   off  # why\nlogs: {level: WARNING}\n"])
def test_the_setting_wins(house: SharedHouse, setting: str) -> None:
    house.config.write_text(setting)
    check_alone(house, "the setting daemon is off")
    assert not list(house.runtime.rglob("*.sock"))


def test_the_setting_wins_in_every_form_that_a_file_may_have(house: SharedHouse) -> None:
    house.config.write_text('{"daemon": "off"}')
    check_alone(house, "the shared server refuses: the setting daemon is off")


def test_a_project_cannot_switch_it(house: SharedHouse) -> None:
    project = house.cwd / ".onetool"
    project.mkdir()
    (project / "onetool.yaml").write_text("daemon: off\n")
    done = house.typed("check", "--json")
    assert "trust" in done.stdout + done.stderr
    trusted = house.typed("trust", "--yes")
    assert trusted.returncode != 0
    assert "daemon" in trusted.stderr


def test_a_plain_server_is_never_shared(house: SharedHouse) -> None:
    with house.client(shared=False) as client:
        assert client.run("1 + 1").text == "2"
        assert house.servers() == []
