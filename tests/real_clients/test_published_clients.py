"""The official clients, and the inspector's command line, over the relay, in both eras of the protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import wait_while
from real_clients.agent_session import install_lab
from shared_server.published_clients import (
    CRASH,
    LOG,
    Conversation,
    Said,
    Start,
    converse_in_python,
    converse_in_typescript,
    inspect,
    own_command,
)
from shared_server.shared_house import SharedHouse
from system_package import require_programs

pytestmark = pytest.mark.timeout(400)  # the programs may have to be installed first
ERAS = ("legacy", "2026-07-28")


@pytest.fixture
def crash(house: SharedHouse) -> Iterator[None]:
    """Kill the shared server once a program says so."""

    def kill() -> None:
        wait_while(lambda: not (house.cwd / CRASH).exists() and "no program has asked for it")
        house.kill_daemon()

    install_lab(house.home)
    killing = threading.Thread(target=kill)
    killing.start()
    yield
    killing.join()


def start_of(house: SharedHouse, era: str) -> Start:
    return Start(own_command("serve", "--shared"), house.cwd, house.environment(), era)


def check(seen: Conversation, house: SharedHouse) -> None:
    """The conversation went as with a server of the client's own."""
    assert seen.tools == ["run"]
    assert seen.allowed == Said("3")
    assert seen.declined.is_error
    assert "bin.delete was not called" in seen.declined.text
    assert ["bin.delete" in question for question in seen.questions] == [True, True]
    assert (house.cwd / LOG).read_text() == "3\n"
    assert seen.cancelled == "cancelled"
    assert "2/2 counted" in seen.progress
    assert "line 499" in seen.read.text
    assert seen.images == ["image/png"]
    assert "its effect is not known" in seen.crashed
    assert seen.after == Said("2")
    (server,) = house.servers()
    assert [one["runs"] for one in server["connections"] if one["runs"]] == []


@pytest.mark.anyio
@pytest.mark.usefixtures("crash")
@pytest.mark.parametrize("era", ERAS)
async def test_the_python_client_lists_runs_is_asked_and_cancels(house: SharedHouse, era: str) -> None:
    check(await converse_in_python(start_of(house, era)), house)


@pytest.mark.usefixtures("crash")
@pytest.mark.parametrize("era", ERAS)
def test_the_typescript_client_lists_runs_is_asked_and_cancels(house: SharedHouse, era: str, tmp_path: Path) -> None:
    require_programs("npm", "node")
    check(converse_in_typescript(start_of(house, era), tmp_path / "client"), house)


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_lists_and_runs(house: SharedHouse, era: str) -> None:
    require_programs("npm", "node")
    start = start_of(house, era)
    assert [tool["name"] for tool in inspect(start, "tools/list")["tools"]] == ["run"]
    reply = inspect(start, "tools/call", "--tool-name", "run", "--tool-arg", "command=1+1")
    assert [block["text"] for block in reply["content"]] == ["2"]
    assert len(house.servers()) == 1
