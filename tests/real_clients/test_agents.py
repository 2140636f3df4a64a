"""Coding agents from npm use OneTool end to end, with a scripted model on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_clients.agent_session import (
    asks,
    dialogue,
    install_lab,
    observe_answers,
    observe_dialogue,
    observe_task,
    observe_upgrade,
    script,
    upgraded,
)
from real_clients.client_programs import PROGRAMS, ClientProgram
from real_clients.model_server import scripted_model
from real_clients.observed import PAGE, compare, recorded_versions, written
from real_clients.published_clients import VERSIONS
from real_clients.tapped_client import SECONDS, TappedClient, end_daemons
from shared_bed import SharedBed, asked_bed
from shared_server.installed_copy import InstalledCopy
from system_package import require_programs

pytestmark = pytest.mark.timeout(600)  # the programs may have to be installed first


@pytest.fixture(scope="module")
def programs() -> dict[str, ClientProgram]:
    """The agents, installed."""
    require_programs("npm", "node")

    async def install() -> None:
        async with asyncio.TaskGroup() as tasks:
            for program in PROGRAMS.values():
                tasks.create_task(program.install())

    asyncio.run(install())
    return PROGRAMS


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, programs: dict[str, ClientProgram]) -> Iterator[SharedBed]:
    """The home of a user with all the agents, whose shared server runs."""
    with asked_bed(tmp_path_factory.mktemp("agents")) as made:
        install_lab(made.home)
        with made.client() as client:
            assert client.run("lab.count(to=1)", timeout=SECONDS).text == "1"
        yield made
        end_daemons(made)


OFTEN = "claude-code"
"""The one that plays the whole task whenever the tests run; the others play it in the soak."""
LONG = ("gemini-cli", "opencode")
"""Those that take too long to be asked in their own dialogue; they are asked in a terminal instead."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] * (name != OFTEN)) for name in PROGRAMS])
def test_an_agent_lists_runs_reads_on_sees_an_image_survives_a_crash_and_cancels(name: str, house: SharedBed) -> None:
    with scripted_model(script(house.cwd / "deleted.txt")) as model:
        client = TappedClient(PROGRAMS[name], house, model, house.home / f"{name}-task")
        client.connect()
        compare(name, "task", observe_task(client))
    if client.program.is_known:
        before = client.other_settings()
        assert house.typed("disconnect", name, "--yes").returncode == 0
        assert "--shared" not in client.settings.read_text()
        assert client.other_settings() == before


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.allow])
def test_a_person_allows_and_denies_a_call_in_the_dialogue_of_an_agent(name: str, house: SharedBed) -> None:
    with scripted_model(dialogue(house.cwd / "deleted.txt")) as model:
        client = TappedClient(PROGRAMS[name], house, model, house.home / f"{name}-dialogue")
        client.connect()
        compare(name, "dialogue", observe_dialogue(client))


@pytest.mark.parametrize("name", LONG)
def test_a_person_allows_and_denies_a_call_in_a_terminal_beside_an_agent(name: str, house: SharedBed) -> None:
    with scripted_model(asks(house.cwd / "deleted.txt")) as model:
        client = TappedClient(PROGRAMS[name], house, model, house.home / f"{name}-answers")
        client.connect()
        observe_answers(client)


def test_an_agent_is_served_on_when_another_version_is_installed(
    programs: dict[str, ClientProgram], tmp_path: Path
) -> None:
    copy = InstalledCopy(tmp_path / "installed")
    onetool = f"env -u PYTHONPATH {copy.python} -P -c 'from ot.entry import main; main()'"
    with asked_bed(tmp_path / "user") as house, scripted_model(upgraded(house)) as model:
        install_lab(house.home)
        client = TappedClient(programs["codex"], house, model, house.home / "codex-upgrade", onetool)
        client.connect()
        observe_upgrade(client, copy.upgrade)
        end_daemons(house)


def test_the_file_is_about_the_versions_that_are_installed_and_the_page_shows_it() -> None:
    assert recorded_versions() == {name: program.version for name, program in PROGRAMS.items()} | VERSIONS
    page = PAGE.read_text()
    assert written(page) == page, "run: python tests/real_clients/observed.py"
