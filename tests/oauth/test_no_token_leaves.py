"""A server process with logins, at work and in trouble: no byte that leaves it holds a token."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from mcp_wire import process_tree
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import Person, guarded_config
from oauth.resource_server import LoopbackResourceServer
from oauth.test_login_states import onetool
from servers.desk import fake

pytestmark = pytest.mark.anyio

PROGRAMS = (
    "guarded.echo(text='hello')",
    "guarded.reflect()",
    "guarded.fail_with_it()",
    "guarded.reflect() * 5000",
    "fake.echo(text='x')",
    "ot.health()",
    "ot.config()",
    "ot.stats()",
    "ot.help(query='guarded')",
    "guarded.store(text='x')",
)
COMMANDS = (
    ("auth", "status", "--json"),
    ("servers", "--json"),
    ("logs",),
)


def made(directory: Path, resource: LoopbackResourceServer) -> Path:
    """Return a home with the guarded server, and beside it one that is a process, which gets an environment."""
    home = directory / "home"
    (home / ".onetool").mkdir(parents=True)
    (directory / "work").mkdir()
    config = guarded_config(resource)
    config["servers"]["fake"] = fake()
    config |= {"policy": {"allow": ["guarded.*", "fake.*"]}, "logs": {"level": "DEBUG"}}
    (home / ".onetool" / "onetool.yaml").write_text(json.dumps(config))
    (directory / "user").symlink_to(home / ".onetool")
    return home


def environments(pid: int) -> Iterable[bytes]:
    """Yield the environments and arguments of a process and of all that it started."""
    for stat in process_tree(pid):
        for name in ("environ", "cmdline"):
            try:
                yield Path(f"/proc/{stat.pid}/{name}").read_bytes()
            except OSError:
                continue


async def said_by_server(directory: Path, home: Path, issuer: LoopbackAuthorizationServer) -> list[bytes]:
    """Return all that a server process said in a session with a login, a renewal, more scope and a revocation."""
    said: list[bytes] = []

    async def hear(message: Any) -> None:
        said.append(repr(message).encode())

    stderr = directory / "stderr.txt"
    transport = StdioTransport(
        sys.executable,
        ["-c", "from ot.entry import main; main()", "serve"],
        env={**os.environ, "HOME": str(home)},
        cwd=str(directory / "work"),
        log_file=stderr,
        keep_alive=False,
    )
    async with Client(transport, elicitation_handler=Person(), message_handler=hear, log_handler=hear) as client:
        for number, program in enumerate(PROGRAMS):
            if number == 4:
                issuer.book.forget_access()
            result = await client.call_tool("run", {"command": program}, raise_on_error=False)
            said.append(repr(result).encode())
        said += environments(os.getpid())
        issuer.book.revoke_all()
        result = await client.call_tool("run", {"command": "guarded.reflect()"}, raise_on_error=False)
        said.append(repr(result).encode())
    return [*said, await asyncio.to_thread(stderr.read_bytes)]


def kept_outside_logins(home: Path) -> Iterable[tuple[str, bytes]]:
    """Yield every file below *home* but the records of logins, which are what keeps tokens."""
    for file in sorted((home / ".onetool").rglob("*")):
        if file.is_file() and "logins" not in file.relative_to(home).parts:
            yield str(file), file.read_bytes()


async def test_no_token_is_in_replies_logs_statistics_files_commands_or_environments(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    home = await asyncio.to_thread(made, tmp_path, resource)
    said = await said_by_server(tmp_path, home, issuer)
    commands = await asyncio.gather(*(onetool(tmp_path, *command) for command in COMMANDS))
    places = [("said", text) for text in said] + [(str(pair), pair[1].encode()) for pair in commands]
    places += [*kept_outside_logins(home)]
    codes = [query.split(b"code=")[1][:48] for query in issuer.received if b"code=" in query]
    secrets = [secret.encode() for secret in issuer.book.secrets] + codes
    assert issuer.counts["refreshes"] >= 1 and issuer.counts["logins"] >= 3 and len(secrets) >= 8
    assert b"[secret:login of guarded]" in b"".join(said), "the careless tools told nothing"
    leaks = [(where, _around(secret, text)) for where, text in places for secret in secrets if secret in text]
    assert not leaks
    assert len([1 for where, _ in places if where.endswith((".log", ".db"))]) >= 2, "logs and statistics were searched"


def _around(secret: bytes, text: bytes) -> bytes:
    at = text.index(secret)
    return text[max(0, at - 60) : at + len(secret)]
