"""The tool definitions of real servers, asked of them while the tests run: installed once, started, listed, ended."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pwd
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, TextIO

from uv import find_uv_bin

from real_servers.server_table import REAL_SERVERS, RealServer

INSTALL_SECONDS = 240.0
LIST_SECONDS = 40.0
AT_ONCE = 3
"""Installs and starts that go on together: gentle to a machine of two cores."""

Definition = dict[str, Any]


KEPT: dict[str, list[Definition]] = {}
"""What was listed in this process already: each server is started once for all tests."""


async def real_catalogues(names: Iterable[str] = tuple(REAL_SERVERS)) -> dict[str, list[Definition]]:
    """Return the definitions of the tools of each named server, as they came over the wire."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def keep(name: str) -> None:
        async with gate:
            KEPT[name] = await list_tools(REAL_SERVERS[name])

    wanted = list(names)
    async with asyncio.TaskGroup() as tasks:
        for name in wanted:
            if name not in KEPT:
                tasks.create_task(keep(name))
    return {name: KEPT[name] for name in wanted}


async def list_tools(server: RealServer) -> list[Definition]:
    """Return what one server answers to tools/list, all pages of it; it is installed and started for that."""
    await install(server)
    async with asyncio.timeout(LIST_SECONDS):
        async with _started(server) as process:
            return await _ask_for_tools(process)


def command_of(server: RealServer, place: Path) -> list[str]:
    """Return the command line of an installed server that is started in *place*."""
    folder = installed_at(server) / ("node_modules/.bin" if server.registry == "npm" else "bin")
    return [str(folder / server.program), *(arg.format(place=place) for arg in server.args)]


def environment_of(server: RealServer, place: Path) -> dict[str, str]:
    """Return the environment of a server: a home of its own, and what the table gives it."""
    return {"PATH": os.environ["PATH"], "HOME": str(place), "NO_COLOR": "1", "CI": "1", **server.env}


# ---------------------------------------------------------------- installing


def cache() -> Path:
    """Return where servers stay installed between runs of the tests."""
    given = os.environ.get("REAL_SERVERS_CACHE")
    # Tests have a home of their own, which is empty; the user's does not move.
    return Path(given) if given else Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "onetool-tests"


def installed_at(server: RealServer) -> Path:
    """Return the directory of an installed server, by its version."""
    return cache() / server.registry / f"{server.name}_{server.version.replace('.', '_')}"


async def install(server: RealServer) -> None:
    """Install *server* unless it is; processes that want it at the same time wait for one of them."""
    place = installed_at(server)
    async with locked_directory(place) as is_complete:
        if not is_complete:
            await (_npm_install if server.registry == "npm" else _pypi_install)(server, place)


@contextlib.asynccontextmanager
async def locked_directory(place: Path) -> AsyncGenerator[bool]:
    """Give whether something is installed in *place* already; when the block ends without a failure, it is."""
    with _lock_file(place) as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        yield (place / "complete").exists()
        (place / "complete").touch()


def _lock_file(place: Path) -> TextIO:
    place.mkdir(parents=True, exist_ok=True)
    return place.with_suffix(".lock").open("w")


async def _npm_install(server: RealServer, place: Path) -> None:
    # No package's own scripts: they fetch browsers and the like, which listing tools does not need.
    flags = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", "--prefix", str(place)]
    await done("npm", "install", *flags, server.requirement)


async def _pypi_install(server: RealServer, place: Path) -> None:
    uv = find_uv_bin()
    await done(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place))
    await done(uv, "pip", "install", "--quiet", "--python", str(place / "bin/python"), server.requirement)


async def done(*command: str) -> None:
    """Run a command of the user, and wait until it has ended well."""
    environment = {**os.environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(INSTALL_SECONDS):
        _, words = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {words.decode(errors='replace')[-2000:]}"


# ---------------------------------------------------------------- asking


@contextlib.asynccontextmanager
async def _started(server: RealServer) -> AsyncGenerator[asyncio.subprocess.Process]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        process = await asyncio.create_subprocess_exec(
            *command_of(server, Path(place)),
            env=environment_of(server, Path(place)),
            cwd=place,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=16 << 20,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()


async def _ask_for_tools(process: asyncio.subprocess.Process) -> list[Definition]:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    await _request(process, 1, "initialize", hello)
    _send(process, {"method": "notifications/initialized"})
    tools: list[Definition] = []
    page: dict[str, Any] = {}
    for number in range(2, 100):
        reply = await _request(process, number, "tools/list", page)
        tools += reply["tools"]
        if not reply.get("nextCursor"):
            return tools
        page = {"cursor": reply["nextCursor"]}
    raise AssertionError("the server's list of tools has no end")


def _send(process: asyncio.subprocess.Process, message: dict[str, Any]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


async def _request(process: asyncio.subprocess.Process, number: int, method: str, params: dict[str, Any]) -> Any:
    assert process.stdout
    _send(process, {"id": number, "method": method, "params": params})
    while line := await process.stdout.readline():
        with contextlib.suppress(ValueError):  # some servers talk on standard output
            message = json.loads(line)
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                return message["result"]
    raise AssertionError(f"the server ended before it answered {method}")
