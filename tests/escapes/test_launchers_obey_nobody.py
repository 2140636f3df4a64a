"""No directory makes a server run its code: neither one that a client stands in, nor what a program writes there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from escapes.house import House
from escapes.launchers import PYTHON_SERVER, Launched, launched
from mcp_wire import WireServer

NAMES = ("npx", "uvx", "uv", "module", "node", "shell")
PACK = "by_{}"
"""No word of a trap, since a server is connected as soon as a program names its pack."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Mapping[str, Launched], WireServer]]:
    """A client in a hostile directory, which has no .onetool of its own."""
    house = House.build(tmp_path_factory.mktemp("place"))
    servers = launched(house.outside)
    for server in servers.values():
        for name, text in server.traps.items():
            (house.work / name).parent.mkdir(exist_ok=True)
            (house.work / name).write_text(text)
    with _serving(house, servers, house.work, _environment_of(house.work)) as server:
        yield house, servers, server


def _environment_of(work: Path) -> dict[str, str]:
    """Return the variables of a shell that has read the settings of the repository *work*."""
    return {
        "NPM_CONFIG_USERCONFIG": f"{work}/.npmrc",
        "NPM_CONFIG_NODE_OPTIONS": f"--require={work}/evil.js",
        "PIP_CONFIG_FILE": f"{work}/pip.conf",
        "UV_CONFIG_FILE": f"{work}/uv.toml",
        "UV_PYTHON": f"{work}/.venv/bin/python",
    }


def _serving(
    house: House, servers: Mapping[str, Launched], cwd: Path, env: Mapping[str, str] | None = None
) -> WireServer:
    settings = {PACK.format(name): {**server.settings, "start_seconds": 60} for name, server in servers.items()}
    house.user_file(json.dumps({"servers": settings}))
    return house.serve(cwd=cwd, env=env)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_of_the_user_runs_nothing_that_lies_where_the_client_stands(
    served: tuple[House, Mapping[str, Launched], WireServer], name: str
) -> None:
    house, servers, server = served
    reply = server.run(f"{PACK.format(name)}.where()", timeout=60)
    assert not servers[name].mark.exists()
    if servers[name].starts:
        assert Path(reply.text).parent == house.settings / "homes"
        assert Path(reply.text).name.startswith(f"{PACK.format(name)}-")
        assert not reply.is_error
    else:
        assert reply.is_error


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Mapping[str, Launched], WireServer]]:
    """A client in the home directory, above the directories of all servers, whose program has written what it could."""
    house = House.build(tmp_path_factory.mktemp("home"))
    servers = launched(house.outside)
    with _serving(house, servers, house.home) as server:
        server.run(_write_all(servers), timeout=60)
        yield house, servers, server


def _write_all(servers: Mapping[str, Launched]) -> str:
    """Return a program that lays the traps in the home directory and in each directory down to those of servers."""
    traps = [trap for server in servers.values() for trap in server.traps.items()]
    traps += [("node_modules/.bin/tiny-server", f"#!/bin/sh\ntouch {servers['npx'].mark}\n")]
    places = ["", ".onetool/", ".onetool/homes/"]
    return (
        f"for place in {places!r}:\n"
        f"    for name, text in {traps!r}:\n"
        "        try:\n"
        "            file.write(path=place + name, content=text)\n"
        "        except PermissionError:\n"
        "            pass\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_server_of_the_user_runs_nothing_that_a_program_wrote_in_the_home_directory(
    at_home: tuple[House, Mapping[str, Launched], WireServer], name: str
) -> None:
    _, servers, server = at_home
    reply = server.run(f"{PACK.format(name)}.where()", timeout=60)
    assert not servers[name].mark.exists()
    assert reply.is_error is not servers[name].starts


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, WireServer]]:
    """A trusted project whose server is a script of the project that starts elsewhere, and a server of the user."""
    house = House.build(tmp_path_factory.mktemp("trusted"))
    module = launched(house.outside)["module"]
    (house.work / "server.py").write_text(PYTHON_SERVER)
    script = {"command": sys.executable, "args": [str(house.work / "server.py")], "cwd": "/"}
    house.project_file(json.dumps({"servers": {"theirs": script}}))
    house.trust()
    with _serving(house, {"module": module}, house.work) as server:
        yield house, server


@pytest.mark.parametrize("name", ["server.py", "json.py", "encodings/__init__.py"])
def test_a_program_does_not_write_what_the_server_of_a_trusted_project_executes(
    trusted: tuple[House, WireServer], name: str
) -> None:
    house, server = trusted
    mark = house.outside / "escaped"
    reply = server.run(f"file.write(path={name!r}, content={f'open({str(mark)!r}, "w")'!r})")
    assert "the server 'theirs' executes it" in reply.text
    assert server.run("theirs.where()").text == "/"
    assert not mark.exists()


def test_a_program_reads_the_private_directory_of_a_server_and_does_not_write_it(
    trusted: tuple[House, WireServer],
) -> None:
    _, server = trusted
    pack = PACK.format("module")
    assert "package.json" in server.run(f"[entry['path'] for entry in file.list(path={pack}.where())]").text
    assert "private" in server.run(f"file.read(path={pack}.where() + '/package.json')").text
    assert "PermissionError" in server.run(f"file.write(path={pack}.where() + '/x.py', content='')").text
    assert "PermissionError" in server.run(f"file.read(path={pack}.where() + '/../../onetool.yaml')").text
