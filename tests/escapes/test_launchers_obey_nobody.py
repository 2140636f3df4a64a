"""No directory makes a server run its code: neither where a client stands, nor where a program writes."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from escapes.house import House
from mcp_wire import WireServer

PYTHON_SERVER = """
import asyncio, json, os, sys

def answer(message):
    if message["method"] == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "tiny", "version": "1"}}
    if message["method"] == "tools/list":
        return {"tools": [{"name": "where", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    if message["method"] == "tools/call":
        return {"content": [{"type": "text", "text": os.getcwd()}]}

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message)
            told = {"result": result} if result else {"error": {"code": -32601, "message": "unknown"}}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)

if __name__ == "__main__":
    main()
"""
NODE_SERVER = """#!/usr/bin/env node
const tools = [{name: "where", inputSchema: {type: "object"}, annotations: {readOnlyHint: true}}];
const answers = {
  "initialize": m => ({protocolVersion: m.params.protocolVersion, capabilities: {tools: {}},
                       serverInfo: {name: "tiny", version: "1"}}),
  "tools/list": () => ({tools}),
  "tools/call": () => ({content: [{type: "text", text: process.cwd()}]}),
};
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  const told = answers[m.method] ? {result: answers[m.method](m)} : {error: {code: -32601, message: "unknown"}};
  console.log(JSON.stringify({jsonrpc: "2.0", id: m.id, ...told}));
});
"""


@dataclass(frozen=True)
class Launched:
    """A server's settings, what in its working directory would make it touch the file *mark*, and whether it starts."""

    settings: Mapping[str, Any]
    traps: Mapping[str, str]
    mark: Path
    starts: bool = True


def launched(place: Path) -> dict[str, Launched]:
    """Build the servers below *place*, and return them by name."""
    shelf = place / "shelf"
    shelf.mkdir()
    (shelf / "tiny_server.py").write_text(PYTHON_SERVER)
    marks = {name: place / f"{name}-was-here" for name in ("npx", "uvx", "uv", "module", "node", "shell")}
    python = str(shelf / "tiny_server.py")
    (shelf / "server.sh").write_text(f"git status >&2\nexec {sys.executable} {python}\n")
    wheel = _wheel(shelf)
    uv = Path(sys.executable).parent
    offline = ["--offline", "--python", sys.executable]
    modules = {"PYTHONPATH": str(shelf)}
    return {
        "npx": Launched(
            {"command": "npx", "args": ["-y", "--package", str(_npm_package(shelf)), "tiny-server"]},
            {
                ".npmrc": "script-shell=/usr/bin/node\nnode-options=--require ./evil.js\n",
                "evil.js": f"require('fs').writeFileSync({str(marks['npx'])!r}, '')",
                "package.json": "{}",
            },
            marks["npx"],
        ),
        "uvx": Launched(
            {"command": str(uv / "uvx"), "args": [*offline, "--from", str(wheel), "python", "-m", "tiny_server"]},
            {"asyncio.py": _touch(marks["uvx"], marks["module"])},
            marks["uvx"],
        ),
        "uv": Launched(
            {"command": str(uv / "uv"), "args": ["run", *offline, "--with", str(wheel), "tiny-server"]},
            {
                "pyproject.toml": '[project]\nname="evil"\nversion="0"\n'
                '[build-system]\nrequires=[]\nbuild-backend="evil_backend"\nbackend-path=["."]\n',
                "evil_backend.py": _touch(marks["uv"]),
            },
            marks["uv"],
        ),
        "module": Launched(
            {"command": sys.executable, "args": ["-m", "tiny_server"], "env": modules},
            {"asyncio.py": _touch(marks["uvx"], marks["module"])},
            marks["module"],
        ),
        "node": Launched(
            {"command": "node", "args": ["server.js"]},
            {"server.js": f"require('fs').writeFileSync({str(marks['node'])!r}, '')"},
            marks["node"],
            starts=False,
        ),
        "shell": Launched(
            {"command": "sh", "args": [str(shelf / "server.sh")]},
            {
                "HEAD": "ref: refs/heads/main\n",
                "objects/x": "",
                "refs/x": "",
                "config": "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\n"
                f'fsmonitor = "touch {marks["shell"]};"\n',
            },
            marks["shell"],
        ),
    }


def _touch(*marks: Path) -> str:
    return "".join(f"open({str(mark)!r}, 'w').close()\n" for mark in marks)


def _npm_package(shelf: Path) -> Path:
    package = shelf / "package"
    package.mkdir()
    (package / "package.json").write_text(
        json.dumps({"name": "tiny-server", "version": "1.0.0", "bin": {"tiny-server": "server.js"}})
    )
    (package / "server.js").write_text(NODE_SERVER)
    (package / "server.js").chmod(0o755)
    program = shutil.which("tar")
    assert program
    subprocess.run([program, "-czf", "tiny.tgz", "package"], cwd=shelf, check=True, timeout=20)
    return shelf / "tiny.tgz"


def _wheel(shelf: Path) -> Path:
    wheel, info = shelf / "tiny_server-1.0-py3-none-any.whl", "tiny_server-1.0.dist-info"
    files = {
        "tiny_server.py": PYTHON_SERVER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        sums = (f"{name},sha256={_sum(text)},{len(text)}\n" for name, text in files.items())
        archive.writestr(f"{info}/RECORD", "".join([*sums, f"{info}/RECORD,,\n"]))
    return wheel


def _sum(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


NAMES = ("npx", "uvx", "uv", "module", "node", "shell")
PACK = "by_{}"
"""No word of a trap, since a server is connected as soon as a program names its pack."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Mapping[str, Launched], WireServer]]:
    """A client in a hostile directory, which has no .onetool of its own."""
    house = House.make(tmp_path_factory.mktemp("place"))
    servers = launched(house.outside)
    for server in servers.values():
        for name, text in server.traps.items():
            (house.cwd / name).parent.mkdir(exist_ok=True)
            (house.cwd / name).write_text(text)
    with _serving(house, servers, house.cwd, _environment_of(house.cwd)) as server:
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
    return house.stdio(cwd=cwd, env=env)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_of_the_user_runs_nothing_that_lies_where_the_client_stands(
    served: tuple[House, Mapping[str, Launched], WireServer], name: str
) -> None:
    house, servers, server = served
    reply = server.run(f"{PACK.format(name)}.where()", timeout=60)
    assert not servers[name].mark.exists()
    if servers[name].starts:
        assert Path(reply.text).parent == house.user / "homes"
        assert Path(reply.text).name.startswith(f"{PACK.format(name)}-")
        assert not reply.is_error
    else:
        assert reply.is_error


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Mapping[str, Launched], WireServer]]:
    """A client in the home directory, above the directories of all servers, whose program has written what it could."""
    house = House.make(tmp_path_factory.mktemp("home"))
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
    house = House.make(tmp_path_factory.mktemp("trusted"))
    module = launched(house.outside)["module"]
    (house.cwd / "server.py").write_text(PYTHON_SERVER)
    script = {"command": sys.executable, "args": [str(house.cwd / "server.py")], "cwd": "/"}
    house.project_file(json.dumps({"servers": {"theirs": script}}))
    house.trust()
    with _serving(house, {"module": module}, house.cwd) as server:
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
