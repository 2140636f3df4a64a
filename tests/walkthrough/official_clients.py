"""The official clients for Python and TypeScript, started from the entry that ``onetool connect`` wrote."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from real_servers.catalogues import install, installed_at
from real_servers.server_table import RealServer

SDK = RealServer("typescript-sdk", "npm", "@modelcontextprotocol/sdk", "1.32.2", "")
SCRIPT = Path(__file__).with_name("official_client.mjs")
SECONDS = 120

Answer = Literal["accept", "decline"]


@dataclass
class ClientReply:
    """What a client saw: the tools that it was offered, the questions, and how the program ended."""

    tools: list[str]
    text: str
    is_error: bool
    questions: list[str] = field(default_factory=list[str])


def entered(file: Path, cwd: Path, environment: Mapping[str, str]) -> StdioServerParameters:
    """Return how a client starts OneTool in *cwd*, as its own *file* says."""
    entry: dict[str, Any] = json.loads(file.read_text())["mcpServers"]["onetool"]
    env = {**environment, **entry.get("env", {})}
    return StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=cwd)


async def ask_python(server: StdioServerParameters, program: str, answer: Answer) -> ClientReply:
    """Return what the Python client makes of *program*."""
    questions: list[str] = []

    async def answered(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=answer, content={"decision": "allow"} if answer == "accept" else None)

    async with Client(server, elicitation_callback=answered, read_timeout_seconds=SECONDS) as client:
        listed = await client.list_tools()
        reply = await client.call_tool("run", {"command": program})
    text = "\n".join(block.text for block in reply.content if isinstance(block, TextContent))
    return ClientReply([tool.name for tool in listed.tools], text, bool(reply.is_error), questions)


def install_typescript(place: Path) -> Path:
    """Return a directory in which the TypeScript client can be started."""
    asyncio.run(install(SDK))
    place.mkdir()
    (place / "node_modules").symlink_to(installed_at(SDK) / "node_modules")
    return Path(shutil.copy2(SCRIPT, place))


def ask_typescript(
    script: Path, file: Path, program: str, answer: Answer, cwd: Path, environment: Mapping[str, str]
) -> ClientReply:
    """Return what the TypeScript client makes of *program*."""
    command = ["node", str(script), str(file), program, answer]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return ClientReply(**json.loads(done.stdout))
