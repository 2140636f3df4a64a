"""OneTool as it is installed, with real servers in its configuration, spoken to over its standard streams."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults.watched import Place
from real_servers.catalogues import command_of, install, installed_at
from real_servers.server_table import REAL_SERVERS, RealServer
from server.asked_talk import AskedTalk

MORE_ARGS = {"fetch": ("--allow-private-ips",)}
"""Tests fetch from this machine only."""
MORE_ENV = {"memory": {"MEMORY_FILE_PATH": "{place}/memory.jsonl"}}
"""Its own choice is a file beside its code, which all tests would share."""
ONETOOL = (str(Path(sys.executable).with_name("onetool")), "serve")


def real(name: str, place: Path, **settings: Any) -> dict[str, Any]:
    """Return the settings of a real server that works in *place*, installed if need be."""
    server = REAL_SERVERS[name]
    asyncio.run(install(server))
    program, *args = _as_users_start(server, place)
    # What the table gives it; the rest of its environment is what every server gets.
    more = {key: value.format(place=place) for key, value in MORE_ENV.get(name, {}).items()}
    return {
        "command": program,
        "args": [*args, *MORE_ARGS.get(name, ())],
        "env": {"HOME": str(place), **server.env, **more},
        "cwd": str(place),
        "start_seconds": 60,
        **settings,
    }


def _as_users_start(server: RealServer, place: Path) -> list[str]:
    """Return a command line with the launcher that is between a client and the server on users' machines."""
    program, *args = command_of(server, place)
    if server.registry == "npm":
        return ["npx", "--no", "--prefix", str(installed_at(server)), server.program, *args]
    return [program, *args]


def config_of(servers: Mapping[str, Any], **more: Any) -> str:
    """Return a configuration; JSON is YAML."""
    return json.dumps({"servers": dict(servers), "logs": {"level": "WARNING"}} | more)


@contextmanager
def house(
    root: Path, names: Iterable[str], era: str = "handshake", more: Mapping[str, Any] | None = None, **config: Any
) -> Generator[AskedTalk]:
    """Yield a conversation with OneTool that has the real servers of *names*, and *more*, which are settings."""
    place = Place.make(root)
    servers = {name: real(name, place.cwd) for name in names} | dict(more or {})
    place.config.write_text(config_of(servers, **config))
    talk = AskedTalk.start(place, era, command=ONETOOL)
    with talk.wire:
        yield talk
        assert talk.wire.stdout_junk == []


def git_repository(place: Path) -> Path:
    """Make a repository with one commit, and return where it is."""
    repository = place / "repository"
    repository.mkdir()
    program = shutil.which("git")
    assert program

    def git(*words: str) -> None:
        subprocess.run([program, "-C", str(repository), *words], check=True, capture_output=True, timeout=20)

    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "Somebody")
    git("config", "user.email", "somebody@example.org")
    (repository / "first.txt").write_text("first\n")
    git("add", "first.txt")
    git("commit", "--quiet", "--message", "The first change")
    return repository
