"""The official clients, and the inspector's command line, over the relay, in both eras of the protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from real_clients.agent_session import answer_question, answers, check_answers, install_lab, observe_greeting
from real_clients.observed import compare
from real_clients.published_clients import (
    CRASH,
    LOG,
    STARTED,
    TOLD,
    VERSIONS,
    Conversation,
    Said,
    Start,
    converse_in_inspector,
    converse_in_python,
    converse_in_typescript,
    inspect,
    wait_for,
)
from real_clients.tapped_client import SECONDS, Tap
from shared_bed import SharedBed, asked_bed
from system_package import require_programs

pytestmark = pytest.mark.timeout(400)  # the programs may have to be installed first
ERAS = ("legacy", "2026-07-28")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBed]:
    """The home of a user whose shared server all the clients use."""
    with asked_bed(tmp_path_factory.mktemp("published")) as made:
        install_lab(made.home)
        with made.client() as client:
            assert client.run("lab.count(to=1)", timeout=SECONDS).text == "1"
        yield made


@pytest.fixture
def tap(tmp_path: Path) -> Tap:
    return Tap.make(tmp_path / "tap")


@pytest.fixture
def crash(house: SharedBed) -> Iterator[None]:
    """Kill the shared server once a program says so."""
    clear(house)
    is_over = threading.Event()

    def kill() -> None:
        wait_for(lambda: is_over.is_set() or (house.cwd / CRASH).exists())
        if not is_over.is_set():
            house.kill_daemon()

    killing = threading.Thread(target=kill)
    killing.start()
    yield
    is_over.set()
    killing.join()


def clear(house: SharedBed) -> None:
    """Remove the files of the conversation before."""
    for name in (LOG, STARTED, TOLD, CRASH):
        (house.cwd / name).unlink(missing_ok=True)


def start_of(house: SharedBed, tap: Tap, era: str) -> Start:
    return Start((str(tap.command), "serve", "--shared"), house.cwd, house.environment(), era)


def check(seen: Conversation, house: SharedBed) -> None:
    """The conversation went as with a server of the client's own."""
    assert seen.tools == ["run"]
    check_answers(house, seen.allowed.text, seen.declined.text)
    assert seen.declined.is_error
    assert seen.cancelled == "cancelled"
    assert "line 499" in seen.read.text
    assert "its effect is not known" in seen.crashed
    assert seen.after == Said("2")
    (server,) = house.servers()
    assert [one["runs"] for one in server["connections"] if one["runs"]] == []


def observed(name: str, seen: Conversation, tap: Tap) -> dict[str, Any]:
    about = {"version": VERSIONS[name], **observe_greeting(tap.said)}
    return about | {"tool": seen.tools[0], "progress": "2/2 counted" in seen.progress, "image": seen.images}


def compare_library(name: str, era: str, seen: Conversation, tap: Tap) -> None:
    """The program that uses the library was asked twice, and told of progress."""
    assert ["lab.delete" in question for question in seen.questions] == [True, True]
    compare(name, era, observed(name, seen, tap) | {"dialogue": answers(tap.said)})


@pytest.mark.anyio
@pytest.mark.usefixtures("crash")
@pytest.mark.parametrize("era", ERAS)
async def test_the_python_client_lists_runs_is_asked_and_cancels(house: SharedBed, tap: Tap, era: str) -> None:
    seen = await converse_in_python(start_of(house, tap, era))
    check(seen, house)
    compare_library("python-sdk", era, seen, tap)


@pytest.mark.usefixtures("crash")
@pytest.mark.parametrize("era", ERAS)
def test_the_typescript_client_lists_runs_is_asked_and_cancels(
    house: SharedBed, tap: Tap, era: str, tmp_path: Path
) -> None:
    require_programs("npm", "node")
    seen = converse_in_typescript(start_of(house, tap, era), tmp_path / "client")
    check(seen, house)
    compare_library("typescript-sdk", era, seen, tap)


@pytest.mark.soak
def test_a_person_answers_the_inspectors_questions_in_a_terminal(house: SharedBed, tap: Tap) -> None:
    require_programs("npm", "node")

    def press(key: str) -> None:
        wait_for(lambda: any(house.directory.glob("*.ask")))
        answer_question(house, key)

    clear(house)
    seen = converse_in_inspector(start_of(house, tap, ERAS[1]), press, house.kill_daemon)
    check(seen, house)
    compare("inspector", ERAS[1], observed("inspector", seen, tap) | {"nobody there": answers(tap.said)})


def test_the_inspector_lists_and_runs_in_the_era_before(house: SharedBed, tap: Tap) -> None:
    require_programs("npm", "node")
    start = start_of(house, tap, ERAS[0])
    reply = inspect(start, "tools/call", "--tool-name", "run", "--tool-arg", "command=1+1")
    assert [block["text"] for block in reply["content"]] == ["2"]
    assert len(house.servers()) == 1
    compare("inspector", ERAS[0], {"version": VERSIONS["inspector"], **observe_greeting(tap.said)})
